/// An open collection: a name and a format. Its records are found through the suite's content.
final class UserDefaultsCollection {
    let name: [UInt8]
    let format: SuiteKey.Format

    init(name: [UInt8], format: SuiteKey.Format) {
        self.name = name
        self.format = format
    }
}
