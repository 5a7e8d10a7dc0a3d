"""A stored run as one page that needs nothing but itself."""

from culpa.report.html.page import page

__all__ = ["page"]
