"""OpportunityCost: pods go where what they take is worth the least to pods like those of late."""
