/// The options of a plugin that has none.
public struct NoOptions: PluginOptions {
    public struct Key: RawRepresentable<String>, CaseIterable {
        public static var allCases: [Key] { [] }
        public let rawValue: String

        public init?(rawValue: String) { nil }
    }

    public init(_ reader: OptionReader<Key>) {}
}
