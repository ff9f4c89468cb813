import CRUDConfiguration
import CRUDModel
import Testing

import struct CRUDTestSupport.SeededGenerator

/// After any random edits of the sample the result is a configuration or diagnostics in the order of the file, each one
/// line at a position inside the file.
@Suite struct ConfigurationMutationTests {
    @Test(arguments: [1, 2, 3, 4] as [UInt64])
    func survivesEveryMutation(seed: UInt64) {
        var random = SeededGenerator(seed: seed)
        let original = Array(sample.utf8)
        for round in 0..<1000 {
            var text = original
            for _ in 0...Int.random(in: 0..<4, using: &random) { mutate(&text, using: &random) }
            do {
                let configuration = try Configuration(yaml: text, file: "f", environment: [:])
                for backend in configuration.backends { #expect(isJSON(backend.options)) }
            } catch {
                check(error, text, "seed \(seed), round \(round)")
            }
        }
    }

    private func check(_ error: InvalidConfiguration, _ text: [UInt8], _ context: Comment) {
        // libyaml counts the line breaks of YAML 1.1, U+0085 and U+2028 among them; all of them are counted here.
        let lines = text.count { [0x0A, 0x0D, 0x85, 0xA8, 0xA9].contains($0) } + 1
        #expect(!error.diagnostics.isEmpty, context)
        #expect(error.diagnostics.map(\.position) == error.diagnostics.map(\.position).sorted(), context)
        for diagnostic in error.diagnostics {
            #expect((1...lines).contains(diagnostic.line), context)
            #expect((1...text.count + 1).contains(diagnostic.column), context)
            #expect(!diagnostic.message.utf8.contains { $0 < 0x20 }, context)
        }
    }

    private func mutate(_ text: inout [UInt8], using random: inout SeededGenerator) {
        let special = Array("{}[]:,-?*&!|>'\"%@`#~\\<\n\t \0".utf8) + [0xC3, 0xE2, 0xF0, 0xFF, 0x80]
        let index = Int.random(in: 0..<max(text.count, 1), using: &random)
        let range = index..<min(text.count, index + Int.random(in: 1...40, using: &random))
        switch Int.random(in: 0..<6, using: &random) {
        case 0 where !text.isEmpty: text[index] = UInt8.random(in: .min ... .max, using: &random)
        case 1: text.insert(special[Int.random(in: special.indices, using: &random)], at: min(index, text.count))
        case 2 where range.lowerBound <= range.upperBound: text.removeSubrange(range)
        case 3: text.insert(contentsOf: text[range], at: Int.random(in: 0...text.count, using: &random))
        case 4: text.removeLast(text.count / 2)
        default: text.insert(contentsOf: "- {a: [\"".utf8, at: min(index, text.count))
        }
    }
}
