# frozen_string_literal: true

require "json"
require_relative "mutation_run"

module Conformance
  # Compares how Pando and Node read the same requests, one per connection, and explains the differences.
  class NodeDifferences
    SLICE = MutationRun::SLICE
    SERVER = File.join(__dir__, "node_server.js")
    PARSER = 9 # the first version of llhttp that is strict about line ends and bytes beyond ASCII: Node 20's

    # input: the bytes; rule: what RFC 9112 requires; node: Node's response, if any
    Case = Struct.new(:input, :rule, :pando, :node) do
      def reason = rule.is_a?(RFC9112::Refusal) ? rule.reason : nil
      def line = input[/\A(?:\r\n)*([^\r\n]*)/n, 1]
    end

    # Node accepts it, Pando does not: what, the section (of RFC 9112 unless specified), and why.
    TAKEN_BY_NODE = {
      "Host is not looked at" =>
        ["3.2", "an invalid Host deserves 400; Node hands it to the application",
         ->(one) { ["malformed host", "malformed IPv6 address", "a port beyond 65535"].include?(one.reason) }],
      "several Host fields" =>
        ["3.2", "more than one deserves 400; Node takes the first",
         ->(one) { one.reason == "more than one Host" }],
      "no version" =>
        ["3", "a request line ends with the version; Node speaks HTTP/0.9",
         ->(one) { one.reason && one.input.match?(/\A(?:\r\n)*[A-Z]+ [!-~]+\r?\n/n) }],
      "spaces in the request line" =>
        ["3", "one parts two of its words; Node skips several",
         ->(one) { one.reason == "malformed request line" && one.line.match?(/\A[A-Z]+ +[!-~]+(?: +[!-~]+)?\z/n) }],
      "another major version" =>
        ["RFC 9110 2.5", "Node takes HTTP/0.9 and HTTP/2.0 as if they were 1.1",
         ->(one) { one.reason == "another major version" }],
      "the target is not looked at" =>
        ["3.2", "an invalid request line deserves 400; Node hands any printable target to the application",
         ->(one) { one.reason == "malformed target" }],
      "Connection is not looked at" =>
        ["RFC 9110 7.6.1", "its elements are tokens; Node ignores what it does not know",
         ->(one) { one.reason == "malformed Connection" }],
      "empty lines" =>
        ["2.2", "a server should ignore one; Pando does two, Node any number",
         ->(one) { one.reason == "too many empty lines" }],
      "empty lines that are none" =>
        ["2.2", "they end with CRLF; Node skips any CR and LF before the request",
         ->(one) { one.reason == "malformed request line" && one.input.match?(/\A(?:\r\n)*(?:\n|\r(?!\n))/n) }],
      "unknown transfer codings" =>
        ["6.1", "Pando undoes chunked alone (501); Node ignores what stands before it",
         ->(one) { one.reason == "a transfer coding but chunked alone" }],
      "Transfer-Encoding in HTTP/1.0" =>
        ["6.1", "its framing is to be treated as faulty; Node goes by it",
         ->(one) { one.reason == "Transfer-Encoding in HTTP/1.0" }],
      "chunk extensions are not looked at" =>
        ["7.1.1", "a name, and a value if there is a \"=\"; Node skips what stands there",
         ->(one) { one.reason == "malformed chunk size" && one.input.match?(/\r\n\h+[ \t]*;/n) }],
      "chunk sizes with many zeros" =>
        ["7.1", "a recipient must guard against overflow; Pando takes 15 digits and no more",
         ->(one) { one.reason.nil? && one.rule.lenient.include?("a chunk size of more than 15 digits") }]
    }.freeze

    # Pando accepts it, Node does not.
    TAKEN_BY_PANDO = {
      "methods" =>
        ["RFC 9110 9.1", "the application decides which methods there are; Node has a list",
         ->(one) { !METHODS.include?(one.rule.verb) }],
      "expectations" =>
        ["RFC 9110 10.1.1", "one that is not known may be answered with 417, as Node does, or ignored",
         ->(one) { one.node&.status == 417 }],
      "Content-Length said twice" =>
        ["RFC 9110 8.6", "the same number again may be refused, or taken as one",
         ->(one) { one.rule.lenient.include?("the same Content-Length twice") }],
      "framing in the trailer section" =>
        ["RFC 9110 6.5.1", "such fields must not be believed there; Pando drops them, Node refuses the request",
         ->(one) { one.rule.trailer.any? { |name, _| %w[content-length transfer-encoding].include?(name) } }],
      "white space in chunk extensions" =>
        ["7.1.1", "a recipient must parse it; Node refuses it",
         ->(one) { one.input.match?(/\n\h+(?=[^\r\n]*[ \t])[ \t]*;[^\r\n]*\r\n/n) }],
      "white space behind a value" =>
        ["5", "it is no part of it; Node refuses a tab behind what frames the body",
         ->(one) { one.input.match?(/^(?:content-length|transfer-encoding):[^\r\n]*\t[ \t]*\r\n/ni) }],
      "a minor version above 1" =>
        ["RFC 9110 2.5", "it is to be treated as the highest that the server knows",
         ->(one) { one.line.match?(%r{ HTTP/1\.[2-9]\z}n) }]
    }.freeze

    class << self
      def node?
        system("node", "--version", out: File::NULL, err: File::NULL, exception: false) || false
      end

      # @return [String, nil] why a comparison is not possible here
      def obstacle
        return "no node on this machine: apt-get install nodejs" unless node?
        return if parser.to_i >= PARSER

        "this machine's Node is too old: its parser, llhttp #{parser}, is not strict, that of Node 20 and newer is"
      end

      # @return [String] the version of llhttp, its parser
      def parser = IO.popen(["node", "-p", "process.versions.llhttp"], &:read).chomp
    end

    METHODS = node? ? JSON.parse(IO.popen(["node", "-p", "JSON.stringify(require('http').METHODS)"], &:read)) : []

    # @return [Integer] inputs that both read in the same way
    attr_reader :agreed
    # @return [Hash{String => Integer}] number of differences by reason
    attr_reader :explained
    # @return [Array<Case>]
    attr_reader :unexplained

    def initialize(seed)
      @mutations = Mutations.new(seed)
      @agreed = 0
      @explained = Hash.new(0)
      @unexplained = []
    end

    # @return [self]
    def run(count)
      Dir.mktmpdir do |folder|
        with_pando("#{folder}/pando") do |pando|
          with_node("#{folder}/node") do |node|
            count.fdiv(SLICE).ceil.times { compare(Array.new(SLICE) { input }, pando, node) }
          end
        end
      end
      self
    end

    private

    # One request, and nothing behind it: Node drops answers that it owes when what follows is malformed.
    def input
      bytes = @mutations.next
      first = RFC9112.read(bytes).first
      first.is_a?(RFC9112::Message) ? bytes.byteslice(0, first.ends) : bytes
    end

    def compare(inputs, pando, node)
      inputs.zip(pando.run(inputs), node.run(inputs)) do |input, by_pando, by_node|
        judge(Case.new(input, RFC9112.read(input).first, by_pando.first, by_node.first))
      end
    end

    def judge(one)
      pando, node = [one.pando, one.node].map { |seen| [seen.verb, seen.target, seen.body] if seen&.status == 200 }
      return @agreed += 1 if pando == node

      reasons = pando ? TAKEN_BY_PANDO : TAKEN_BY_NODE
      name, = reasons.find { |_, (_, _, fits)| fits.call(one) } unless pando && node
      name ? @explained[name] += 1 : @unexplained << one
    end

    def with_pando(path)
      served = HTTPSupport::ServedQueue.new(Battery::APP, unix: path, **MutationRun::SETTINGS).start
      yield Battery.new(Addrinfo.unix(path))
    ensure
      served&.stop
    end

    # It ends when our end of the pipe does.
    def with_node(path)
      pipe = IO.popen(["node", SERVER, path], "r+")
      raise "node does not start" unless pipe.wait_readable(60) && pipe.gets == "ready\n"

      yield Battery.new(Addrinfo.unix(path))
    ensure
      pipe&.close
    end
  end
end
