"""How long a lease of leader election holds by default: one place for all who stand for election.

client-go has 15, 10 and 2 s.
"""

from typing import Final

#: Whole seconds without a renewal after which another may lead.
LEASE_DURATION: Final = 12
#: Seconds after the last renewal at which a leader stops acting.
RENEW_DEADLINE: Final = 8.0
#: Seconds between attempts.
RETRY_PERIOD: Final = 2.0
