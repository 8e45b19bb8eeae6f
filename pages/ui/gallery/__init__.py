"""The gallery: masks as small pictures, their vectors and numbers, each a click away from Compose."""
