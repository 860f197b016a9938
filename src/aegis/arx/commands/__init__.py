"""The command that imports a project of another tool."""
