import CRUDPluginKit

/// What the administrator configures.
struct UserDefaultsOptions: PluginOptions {
    enum Key: String, CaseIterable {
        case suite
    }

    /// What Foundation calls the suite and its file: a name that is no path and hides nothing.
    let suite: String

    private static let maximumSuiteBytes = 128

    init(_ reader: OptionReader<Key>) throws(StorageFailure) {
        suite = try reader.string(.suite)
        guard let first = suite.utf8.first, PercentEncoding.isAlphanumeric(first),
            suite.utf8.count <= Self.maximumSuiteBytes,
            suite.utf8.allSatisfy({ PercentEncoding.isAlphanumeric($0) || ".-_".utf8.contains($0) })
        else {
            throw reader.invalid(
                .suite,
                "must be a name such as com.example.app: at most \(Self.maximumSuiteBytes) of A-Z, a-z, 0-9, \".\", "
                    + "\"-\" and \"_\", the first a letter or a digit")
        }
    }
}
