"""What a job does when: its time cut where its metrics change, and each part named. Pure."""
