"""masks"""
