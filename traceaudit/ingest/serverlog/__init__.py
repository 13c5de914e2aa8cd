"""Server logs and scraped metrics to samples of the batch: `reader.read_server_log`, whatever wrote them."""
