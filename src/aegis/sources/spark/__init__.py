"""What Spark needs: its sessions, and the folders that its executors write."""
