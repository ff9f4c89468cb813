import CRUDFormats
import CRUDModel
import CRUDTestSupport
import Testing

/// XML property lists as they are written, and as others write them.
@Suite struct XMLPropertyListTests {
    private static let head = #"<?xml version="1.0" encoding="UTF-8"?>"#
    private static let type =
        #"<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">"#

    @Test func isWrittenAsApplesToolsDo() throws {
        let item = #"{"name":"Ada & <Co>","tags":["a",{}],"none":[],"age":36,"score":1e2,"ok":true,"no":false}"#
        let expected = """
            \(Self.head)
            \(Self.type)
            <plist version="1.0">
            <dict>
            \t<key>name</key>
            \t<string>Ada &amp; &lt;Co&gt;</string>
            \t<key>tags</key>
            \t<array>
            \t\t<string>a</string>
            \t\t<dict/>
            \t</array>
            \t<key>none</key>
            \t<array/>
            \t<key>age</key>
            \t<integer>36</integer>
            \t<key>score</key>
            \t<real>100.0</real>
            \t<key>ok</key>
            \t<true/>
            \t<key>no</key>
            \t<false/>
            </dict>
            </plist>

            """
        #expect(String(decoding: try Codec(.xml).encode(item), as: UTF8.self) == expected)
    }

    private func decode(_ document: String) throws -> String { try Codec(.xml).decode(Array(document.utf8)) }

    @Test(arguments: [
        // Around the value.
        ("<plist><true/></plist>", "true"), (head + type + "<plist version='1.0'><true/></plist>", "true"),
        ("\u{FEFF}" + head + "\n<plist version=\"1.0\" >\n<true/>\n</plist >\n\n", "true"),
        ("<?xml version='1.0'?><!-- a --><plist><!-- <b> --><true/><!----></plist><!-- c -->", "true"),
        ("<?xml version='1.0' encoding='utf-8' standalone='no' ?>\r\n<?go now?><plist><true/></plist>", "true"),
        (
            "<!DOCTYPE plist SYSTEM \"file://localhost/System/Library/DTDs/PropertyList.dtd\"><plist><true/></plist>",
            "true"
        ),
        // Booleans.
        ("<plist><true></true></plist>", "true"), ("<plist><false > </false></plist>", "false"),
        // Strings.
        ("<plist><string/></plist>", #""""#), ("<plist><string></string></plist>", #""""#),
        ("<plist><string> a\tb\n </string></plist>", #"" a\tb\n ""#),
        ("<plist><string>a\r\nb\rc&#13;</string></plist>", #""a\nb\nc\r""#),
        ("<plist><string>&lt;&gt;&amp;&quot;&apos;&#65;&#x42;&#x1F600;&#0067;</string></plist>", #""<>&\"'AB😀C""#),
        ("<plist><string><![CDATA[<a>&amp;]]]]><![CDATA[>]]></string></plist>", #""<a>&amp;]]>""#),
        ("<plist><string>a<!-- b -->c<?d e?>f</string></plist>", #""acf""#),
        ("<plist><string>]]>\"'</string></plist>", #""]]>\"'""#),
        ("<plist><string>é😀\u{85}</string></plist>", "\"é😀\u{85}\""),
        ("<plist><string xml:space = \"a>b\" c='\"'>x</string></plist>", #""x""#),
        // Integers.
        ("<plist><integer>0</integer></plist>", "0"), ("<plist><integer> -5\n</integer></plist>", "-5"),
        ("<plist><integer>+7</integer></plist>", "7"), ("<plist><integer>007</integer></plist>", "7"),
        ("<plist><integer>0x1F</integer></plist>", "31"), ("<plist><integer>-0XfF</integer></plist>", "-255"),
        ("<plist><integer>18446744073709551615</integer></plist>", "18446744073709551615"),
        ("<plist><integer>-0</integer></plist>", "0"),
        // Reals.
        ("<plist><real>1.5</real></plist>", "1.5"), ("<plist><real>1</real></plist>", "1.0"),
        ("<plist><real> 1.50e+2 </real></plist>", "150.0"), ("<plist><real>.5</real></plist>", "0.5"),
        ("<plist><real>5.</real></plist>", "5.0"), ("<plist><real>+1E-7</real></plist>", "1e-07"),
        ("<plist><real>0.10000000000000001</real></plist>", "0.1"), ("<plist><real>-0</real></plist>", "-0.0"),
        ("<plist><real>3.14159265358979323846</real></plist>", "3.141592653589793"),
        ("<plist><real>1e-400</real></plist>", "0.0"), ("<plist><real>007.5</real></plist>", "7.5"),
        // Containers.
        ("<plist><array/></plist>", "[]"), ("<plist><array> </array></plist>", "[]"),
        ("<plist>\r\n\t<array>\r</array>\r\n</plist>\r\n", "[]"), ("<plist><dict/></plist>", "{}"),
        ("<plist><dict></dict></plist>", "{}"),
        (
            "<plist><dict><key>a</key><array><integer>1</integer><dict/></array><key/><true/></dict></plist>",
            #"{"a":[1,{}],"":true}"#
        ),
        ("<plist><dict><key> a\n</key><string>b</string></dict></plist>", #"{" a\n":"b"}"#),
        ("<plist><array><array/><array/><string>x</string></array></plist>", #"[[],[],"x"]"#),
    ])
    func readsWhatOthersWrite(document: String, item: String) throws {
        #expect(try decode(document) == item)
    }

    @Test(arguments: [
        // No property list.
        "", " ", "true", "<", "<plist", "<plist>", "<plist/>", "<plist></plist>", "<true/>", "<dict/>",
        "<a><true/></a>",
        "{\"a\":1}", "bplist00", "<html><body/></html>", "x<plist><true/></plist>", "<plist><true/></plist>x",
        "<plist><!DOCTYPE plist><true/></plist>", "<plist><true/></plist><!DOCTYPE plist>",
        "<plist><!ELEMENT a></plist>",
        "<![CDATA[ ]]><plist><true/></plist>", "<plist><![CDATA[]]><true/></plist>", "<!", "<!-", "<plist><!",
        "<plist><true/><true/></plist>", "<plist><true/></plist><plist/>", "<plist><plist><true/></plist></plist>",
        "<plist><true/></dict>", "<plist><true/>", "</plist>", "<?xml", "<?xml version='1.0'",
        // Encodings.
        "<?xml version='1.0' encoding='UTF-16'?><plist><true/></plist>",
        "<?xml version='1.0' encoding='ISO-8859-1'?><plist><true/></plist>",
        // Elements out of place, unknown, unfinished.
        "<plist><string>a</plist>", "<plist><string>a<b/></string></plist>", "<plist><string>a</strin></plist>",
        "<plist><array><true/></dict></plist>", "<plist><dict><true/></dict></plist>",
        "<plist><dict><key>a</key></dict></plist>", "<plist><dict><key>a</key><key>b</key><true/></dict></plist>",
        "<plist><dict><key>a</key><true/><true/></dict></plist>", "<plist><key>a</key></plist>",
        "<plist><array><key>a</key></array></plist>", "<plist><array>x<true/></array></plist>",
        "<plist><dict>x</dict></plist>", "<plist><True/></plist>", "<plist><null/></plist>",
        "<plist><nil></nil></plist>",
        "<plist><a-very-long-name-of-an-element/></plist>", "<plist><></></plist>", "<plist>< true/></plist>",
        "<plist><true / ></plist>", "<plist><true a></plist>", "<plist><true a=b/></plist>",
        "<plist><true a='b/></plist>",
        "<plist><dict><key><string>a</string></key><true/></dict></plist>", "<plist><true>1</true></plist>",
        // Text.
        "<plist><string>&nbsp;</string></plist>", "<plist><string>&</string></plist>",
        "<plist><string>&amp</string></plist>",
        "<plist><string>&#;</string></plist>", "<plist><string>&#x;</string></plist>",
        "<plist><string>&#0;</string></plist>",
        "<plist><string>&#1;</string></plist>", "<plist><string>&#xD800;</string></plist>",
        "<plist><string>&#xFFFE;</string></plist>", "<plist><string>&#x110000;</string></plist>",
        "<plist><string>&#99999999999999999999;</string></plist>", "<plist><string>&#6a;</string></plist>",
        "<plist><string>\u{1}</string></plist>", "<plist><string>\u{0}</string></plist>",
        "<plist><string>\u{FFFE}</string></plist>", "<plist><string><![CDATA[a</string></plist>",
        "<plist><string><!-- </string></plist>",
        // Numbers.
        "<plist><integer/></plist>", "<plist><integer></integer></plist>", "<plist><integer>a</integer></plist>",
        "<plist><integer>1.0</integer></plist>", "<plist><integer>--1</integer></plist>",
        "<plist><integer>0x</integer></plist>",
        "<plist><integer>1 2</integer></plist>", "<plist><integer>0x-1</integer></plist>",
        "<plist><integer>1e3</integer></plist>",
        "<plist><integer>999999999999999999999999999999999999999999</integer></plist>", "<plist><real/></plist>",
        "<plist><real>a</real></plist>", "<plist><real>nan</real></plist>", "<plist><real>inf</real></plist>",
        "<plist><real>-Infinity</real></plist>", "<plist><real>1e400</real></plist>",
        "<plist><real>0x1p3</real></plist>",
        "<plist><real>1.2.3</real></plist>", "<plist><real>1e</real></plist>", "<plist><real>.</real></plist>",
        "<plist><real>+</real></plist>", "<plist><real>--1.5</real></plist>", "<plist><real>1_0.5</real></plist>",
        // Kinds that JSON does not have.
        "<plist><date>2024-01-01T00:00:00Z</date></plist>", "<plist><data>AAAA</data></plist>",
        "<plist><data/></plist>",
    ])
    func whatIsNoneIsCorrupt(document: String) {
        #expect(Codec(.xml).fault(in: Array(document.utf8))?.code == .corrupt, "\(document)")
    }

    @Test(arguments: [("date", "<date>"), ("data", "<data>"), ("real", "<real>")])
    func theErrorSaysWhy(element: String, name: String) throws {
        let document = "<plist><\(element)>nan</\(element)></plist>"
        let error = try #require(Codec(.xml).fault(in: Array(document.utf8)))
        #expect(error.message.contains(name), "\(error.message)")
    }

    /// Nothing is defined, fetched or expanded.
    @Test(arguments: [
        #"<!DOCTYPE plist [<!ENTITY a "b">]><plist><string>&a;</string></plist>"#,
        #"<!DOCTYPE plist [<!ENTITY a SYSTEM "file:///etc/passwd">]><plist><string>&a;</string></plist>"#,
        #"<!DOCTYPE plist [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;">]><plist><string>&b;</string></plist>"#,
        #"<!DOCTYPE plist SYSTEM "x" [<!ENTITY % a SYSTEM "http://localhost/">%a;]><plist><true/></plist>"#,
        #"<!DOCTYPE plist [ ]><plist><true/></plist>"#, #"<plist><string>&a;</string></plist>"#,
    ])
    func entitiesAreRefused(document: String) {
        #expect(Codec(.xml).fault(in: Array(document.utf8))?.code == .corrupt)
    }

    @Test(arguments: [[0xFF], [0xC0, 0x80], [0xED, 0xA0, 0x80], [0xE2, 0x82], [0x80]] as [[UInt8]])
    func invalidUTF8IsCorrupt(bytes: [UInt8]) {
        let document = Array("<plist><string>".utf8) + bytes + Array("</string></plist>".utf8)
        #expect(Codec(.xml).fault(in: document)?.code == .corrupt)
        #expect(Codec(.xml).fault(in: [0xFF, 0xFE] + document)?.code == .corrupt)
    }

    @Test func depthIsBounded() {
        let document = "<plist>" + String(repeating: "<array>", count: 500_000)
        #expect(Codec(.xml).fault(in: Array(document.utf8))?.code == .corrupt)
    }
}
