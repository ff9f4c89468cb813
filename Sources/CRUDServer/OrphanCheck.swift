import CRUDConfiguration
import CRUDModel
import CRUDStorage
import CRUDThreads

/// Keeps a changed configuration from orphaning records.
///
/// The catalog remembers where each collection lives and in which format. A collection that the configuration now maps
/// elsewhere, or nowhere, would look empty while its records lie where they were; so a start or reload under such a
/// configuration is refused as long as there are any.
struct OrphanCheck {
    private let configuration: Configuration
    private let backends: [Backend]

    init(_ configuration: Configuration, backends: [Backend]) {
        self.configuration = configuration
        self.backends = backends
    }

    /// How long the count of a collection may take.
    private static let timeout = Duration.seconds(30)

    /// An error for each collection whose records would be orphaned.
    func diagnostics(_ catalog: CollectionCatalog) -> [ConfigurationDiagnostic] {
        catalog.entries.sorted { $0.name.lexicographicallyPrecedes($1.name) }.compactMap(diagnostic)
    }

    private func diagnostic(_ entry: CollectionCatalog.Entry) -> ConfigurationDiagnostic? {
        let rule = configuration.collections.rule(for: entry.name.span)
        guard rule?.backend != entry.backend || rule?.format.rawValue != entry.format else { return nil }
        let records: String
        switch count(entry) {
        case .some(0): return nil
        case .some(let count): records = "\(count) record\(count == 1 ? "" : "s")"
        case nil: records = "an unknown number of records"
        }
        let name = String(decoding: entry.name, as: UTF8.self)
        let place = rule.map { "now mapped to backend \($0.backend) as \($0.format.rawValue)" } ?? "now mapped nowhere"
        return configuration.diagnostic(
            at: rule?.position ?? .start,
            "collection \(name) has \(records) in backend \(entry.backend) as \(entry.format) and is \(place), which "
                + "orphans them; --force does it all the same")
    }

    /// How many records a collection has where it lived; nil if that cannot be told.
    private func count(_ entry: CollectionCatalog.Entry) -> Int? {
        guard let backend = backends.first(where: { $0.name == entry.backend }),
            let format = CollectionRule.Format(rawValue: entry.format)
        else { return nil }
        return backend.count(
            BackendCollection(name: entry.name, format: format, indexPaths: []), within: Self.timeout)
    }
}
