# frozen_string_literal: true

require "test_helper"
require "pando/http"
require "support/small_process"
require_relative "support/full_socket"

# The short way of most answers writes what the long way would, or leaves it alone.
class HTTPOrdinaryAnswerTest < Minitest::Test
  include Pando::HTTP
  include Support::SmallProcess

  # Takes an answer in either way. One that has no short way always says that the answer is not ordinary.
  class Recorder
    attr_reader :text

    def initialize(short:, persistent:, socket:)
      @short = short
      @socket = socket
      @persistent = persistent
      @text = nil
    end

    def answer(line, fields, body, ending)
      return false unless @short

      @text = @socket.text(line, fields, body, ending)
      !@text.nil?
    end

    def persistent? = @persistent
    def last! = @persistent = false
    def transmit(parts) = (@text ||= +"") << parts.join
    def transmit_last(parts) = transmit(parts)
    def check_timeout = nil
    def answering = nil
  end

  FIELDS = [
    {}, { "content-type" => "text/plain" }, { "X-A" => "", "x-b" => "\t ü " }, { "content-length" => "11" },
    { "Content-Length" => "12" }, { "content-length" => "x" }, { "content-length" => "" }, { "date" => "today" },
    { "connection" => "close" }, { "transfer-encoding" => "gzip, chunked" }, { "set-cookie" => %w[a b] },
    { "a" => "b\nc" }, { "a" => "b\r\nc: d" }, { "a b" => "c" }, { a: "b" }, { "a" => 1 }, { "a" => nil },
    { "rack.x" => "y" }, { "status" => "1" }, { "x" => "y" * 5000 }, [%w[a b]]
  ].freeze
  BODIES = [["hello", " ", "world"], ["hello world"], [], [""], ["a"] * 40, ["x" * 40_000]].freeze

  # With room between the parts that is free by now, for the collector to fill. Parts as long as Ruby keeps in an
  # object's own slot, which is what moves.
  COMPACTION = <<~'RUBY'
    require "unit/http/support/full_socket"
    bodies = Array.new(20) do |i|
      Array.new(100) { |k| "to be forgotten #{k} #{"x" * 600}" }
      Array.new(10) { |k| "<part #{i} #{k}> #{"x" * 600}" }
    end
    whole = bodies.map(&:join)
    socket = HTTPSupport::FullSocket.new
    GC.start
    GC.auto_compact = GC.stress = true
    texts = bodies.map { |body| socket.text("L\r\n", {}, body, "\r\n") }
    GC.auto_compact = GC.stress = false
    sent = texts.map { |text| text.partition("\r\n\r\n").last }
    sent.zip(whole) { |found, wanted| found == wanted || abort("sent #{found}") }
  RUBY

  # As above, but the compaction comes before anything is copied: Ruby looks up `each` in the fields' class, for the
  # first time, and allocates memory for what it has found.
  LOOKUP = <<~'RUBY'
    require "objspace"
    require "unit/http/support/fake_reactor"
    ROOMS = Array.new(4) { Array.new(3000) { |k| k.to_s } }
    def fields = Class.new(Hash).new.update("a" => "b")
    def body = @body = Array.new(3) { |k| "<part #{k}>" }
    def places = @body.map { |part| ObjectSpace.dump(part)[/0x\h+/] }
    public def move
      @whole = @body.join
      before = places
      ROOMS.shift.clear
      GC.stress = true
      yield
    ensure
      GC.stress = false
      @moved ||= places != before
    end
    def check(sent)
      sent.end_with?("\r\n\r\n#{@whole}") || abort("sent #{sent}, not #{@whole}")
    end
    GC.start
    GC.auto_compact = true
  RUBY
  BY_WIRE = <<~'RUBY'
    near, far = UNIXSocket.pair
    socket, line, ending = near.fileno, "L\r\n", "\r\n"
    until ROOMS.empty?
      its_fields, its_body = fields, body
      move { Pando::HTTP::Wire.answer(socket, line, its_fields, its_body, ending) }
      check(far.recv(65_536))
    end
    @moved || abort("nothing has moved")
  RUBY
  BY_LANE = <<~RUBY
    main = self
    Pando::HTTP::Lane.prepend(Module.new do
      define_method(:answer) do |line, fields, body, ending, keep|
        main.move { super(line, fields, body, ending, keep) }
      end
    end)
    stage = HTTPSupport::QueuedStage.new(->(_env) { [200, fields, body] })
    check(stage.get.bytes) until ROOMS.empty?
    @moved || abort("nothing has moved")
  RUBY

  def setup
    @socket = HTTPSupport::FullSocket.new
  end

  def teardown
    @socket.close
  end

  def test_both_ways_write_the_same
    each_case do |status, fields, body, persistent, request|
      long = outcome(status, fields, body, request, short: false, persistent: persistent)
      short = outcome(status, fields, body, request, short: true, persistent: persistent)

      assert_equal long, short, [status, fields, body, persistent].inspect[0, 200]
    end
  end

  def test_most_answers_are_ordinary
    assert_equal "HTTP/1.1 404 Not Found\r\na: b\r\ncontent-length: 2\r\n<date>\r\nhi",
                 undated(@socket.text("HTTP/1.1 404 Not Found\r\n", { "a" => "b" }, %w[h i], "\r\n"))
    assert_equal "L\r\ncontent-length: 2\r\n<date>\r\nhi",
                 undated(@socket.text("L\r\n", { "Content-Length" => "02" }, ["hi"], "\r\n"))
  end

  def test_what_has_a_mind_of_its_own_is_not_ordinary
    fields = Class.new(Hash) { def each = yield("c", "d") }.new.update("a" => "b")

    assert_nil @socket.text("L\r\n", fields, ["hi"], "\r\n")
    assert_nil @socket.text("L\r\n", {}, [:hi], "\r\n")
    assert_nil @socket.text("L\r\n", {}, "hi", "\r\n")
    assert_nil @socket.text(nil, {}, ["hi"], "\r\n")
  end

  # Seen from Ruby 3.3 on, which keeps long Strings in the slots that a compaction moves.
  def test_a_compaction_moves_no_part_away_while_it_is_copied
    GC.respond_to?(:auto_compact=) || skip("this Ruby has no GC compaction")
    assert_in_small_process(COMPACTION)
  end

  def test_a_compaction_moves_no_part_away_before_it_is_sent
    GC.respond_to?(:auto_compact=) || skip("this Ruby has no GC compaction")
    skip "GC.stress compacts nothing on this Ruby" if Gem::Version.new(RUBY_VERSION) >= Gem::Version.new("4.0")
    [BY_WIRE, BY_LANE].each { |way| assert_in_small_process("#{LOOKUP}\n#{way}") }
  end

  private

  def undated(text) = text&.sub(/^date: .* GMT\r\n/, "<date>")

  def each_case(&block)
    [200, 404, 204, 205, 304, 299, "200", 42].product(FIELDS, BODIES, [true, false], requests).each(&block)
  end

  def requests
    [%w[GET 1], %w[HEAD 1], %w[GET 0]].map do |verb, minor|
      Request.new.begin({ "REQUEST_METHOD" => verb, "PATH_INFO" => "/" }, minor.to_i)
    end
  end

  def outcome(status, fields, body, request, **options)
    client = Recorder.new(socket: @socket, **options)
    Response.deliver(client, request, status, fields, body)
    undated(client.text)
  rescue InvalidResponse, TypeError => e
    [e.class, e.message, undated(client.text)]
  end
end
