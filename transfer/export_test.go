package transfer

// PublicID is for the tests of a package of their own.
var PublicID = publicID
