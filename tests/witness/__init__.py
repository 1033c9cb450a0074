"""The zoo: trainings with one bug each, and honest ones, on which the audits are measured."""
