package import CRUDModel

/// From where a collection is served now.
package struct Serving: Sendable, Equatable {
    package var place: CollectionPlace
    /// Why its requests are refused; nil: they are not.
    package var closedReason: String?

    package init(_ place: CollectionPlace, closedReason: String? = nil) {
        self.place = place
        self.closedReason = closedReason
    }

    /// Says from where a collection is served that a rule maps; callable on any thread.
    package typealias Lookup = @Sendable (_ name: [UInt8], _ rule: CollectionRule) -> Serving
}
