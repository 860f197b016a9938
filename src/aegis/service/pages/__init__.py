"""The pages that people use, over the same functions as the API."""

from aegis.service.pages.render import error_page
from aegis.service.pages.rooms import page_routers

__all__ = ["error_page", "page_routers"]
