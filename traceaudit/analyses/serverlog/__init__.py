"""What a server really ran: `analysis.serverlog` and `readings.step_readings`."""
