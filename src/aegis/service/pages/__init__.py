"""The pages for people, which use the same functions as the API."""

from aegis.service.pages.render import error_page
from aegis.service.pages.rooms import page_routers

__all__ = ["error_page", "page_routers"]
