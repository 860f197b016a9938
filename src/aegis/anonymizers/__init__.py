"""anonymizers"""
