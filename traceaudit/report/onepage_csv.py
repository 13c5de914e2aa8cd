"""The steps behind the audit on one page, as CSV."""

from typing import TYPE_CHECKING

from traceaudit.report.csvtable import reconcile
from traceaudit.report.registry import PLAIN_PAGE, Page

if TYPE_CHECKING:
    from traceaudit.model.results.onepage import OnePage

__all__ = ["onepage"]


def onepage(result: "OnePage", page: Page = PLAIN_PAGE) -> str:
    """Write the steps of all devices."""
    return reconcile(result.reconciliation, page)
