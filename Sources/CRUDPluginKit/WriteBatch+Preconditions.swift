extension WriteBatch {
    /// Whether a mutation may take effect on what is there. If not, this is its outcome.
    ///
    /// - Parameters:
    ///   - mutation: the one at `position`.
    ///   - current: revision and expiry of the record that is there; nil: there is none. One that has expired counts as
    ///     none.
    public func permits(
        _ mutation: Mutation<Collection>, at position: Int,
        current: (revision: UnsafeRawBufferPointer, expiresAt: Int64)?
    ) -> Bool {
        guard supports(mutation) else { return refused(position, .unsupported) }
        let revision = current.flatMap { call.hasExpired($0.expiresAt) ? nil : $0.revision }
        let isRemoval = mutation.kind == .remove
        switch (mutation.precondition, revision) {
        case (.none, nil), (.absent, nil):
            return isRemoval ? refused(position, .notFound) : true
        case (.none, .some), (.present, .some):
            return true
        case (.absent, .some):
            return refused(position, .exists)
        case (.revision, .some(let revision)):
            return revision.elementsEqual(mutation.expected) || mismatched(position, current: revision)
        default:
            return refused(position, .notFound)
        }
    }

    /// Whether kind and precondition of a mutation are known and fit together.
    private func supports(_ mutation: Mutation<Collection>) -> Bool {
        guard [.none, .absent, .present, .revision].contains(mutation.precondition) else { return false }
        switch mutation.kind {
        case .put: return mutation.expiresAt == 0 || capabilities.contains(.expiry)
        case .remove: return true
        case .check: return isAtomic
        case .setKeys: return mutation.precondition == .revision && capabilities.contains(.indexes)
        default: return false
        }
    }
}
