"""The catalog as a web service: API, pages, agent, worker and client."""
