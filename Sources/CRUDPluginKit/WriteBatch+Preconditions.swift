extension WriteBatch {
    /// Whether a mutation may take effect on what is there; one that may not is settled by this.
    ///
    /// - Parameters:
    ///   - mutation: the one at `position`.
    ///   - current: the revision that is there; nil: there is no record.
    public func permits(
        _ mutation: Mutation<Collection>, at position: Int, current: UnsafeRawBufferPointer?
    ) -> Bool {
        if mutation.kind == .check, !isAtomic { return refused(position, .unsupported) }
        // A check is settled like a put.
        switch (mutation.kind == .check ? .put : mutation.kind, mutation.precondition, current) {
        case (.put, .none, _), (.put, .absent, nil), (.put, .present, .some), (.remove, .none, .some),
            (.remove, .present, .some):
            return true
        case (.put, .absent, .some), (.remove, .absent, .some):
            return refused(position, .exists)
        case (.put, .present, nil), (.put, .revision, nil), (.remove, .none, nil), (.remove, .absent, nil),
            (.remove, .present, nil), (.remove, .revision, nil):
            return refused(position, .notFound)
        case (.put, .revision, .some(let current)), (.remove, .revision, .some(let current)):
            return current.elementsEqual(mutation.expected) || mismatched(position, current: current)
        default:
            return refused(position, .unsupported)
        }
    }
}
