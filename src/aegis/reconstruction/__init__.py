"""reconstruction"""
