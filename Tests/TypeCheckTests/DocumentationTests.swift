import CRUDTestSupport
import Testing

/// The code in the documentation's pages.
@Suite struct DocumentationTests {
    private static let folder = "\(BuildProducts.packageDirectory)/Sources/CRUDClient/CRUDClient.docc"

    static let pages = (try? Files.names(in: folder).filter { $0 != "CRUDClient.md" }.sorted()) ?? []

    @Test func thereArePages() {
        #expect(Self.pages.count >= 5)
    }

    /// All Swift of a page, in its order, is one program.
    @Test(arguments: pages)
    func compiles(_ page: String) throws {
        var program: [Substring] = []
        var isCode = false
        let text = String(decoding: try Files.read("\(Self.folder)/\(page)"), as: UTF8.self)
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            if line.hasPrefix("```") {
                isCode = line == "```swift"
            } else if isCode {
                program.append(line)
            }
        }
        #expect(!program.isEmpty)
        #expect(try TypeChecker.errors(in: program.joined(separator: "\n")) == [])
    }
}
