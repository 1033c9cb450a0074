"""The records that an audit keeps of a running training, and the plain numbers they become."""

from oraudit.records.around import Around
from oraudit.records.batches import Batches
from oraudit.records.clipping import Look
from oraudit.records.noise import Noise
from oraudit.records.ranks import Ranks
from oraudit.records.record import Earlier, Event, Kind, Record, Seen, Told

__all__ = [
    "Around",
    "Batches",
    "Earlier",
    "Event",
    "Kind",
    "Look",
    "Noise",
    "Ranks",
    "Record",
    "Seen",
    "Told",
]
