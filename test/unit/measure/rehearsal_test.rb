# frozen_string_literal: true

require "test_helper"
require "socket"
require "tmpdir"
require "pando/measure"

# The first pass, with servers of the test's own.
class MeasureRehearsalTest < Minitest::Test
  Measure = Pando::Measure

  # A server that answers each path with a status, and redirects to TLS with 301.
  class Server < Measure::Subject
    ADDRESS = "127.0.0.1"

    attr_reader :name

    def initialize(name, folder, statuses)
      @name = name
      @statuses = statuses
      super(Struct.new(:environment).new("production"), workers: 2, folder: File.join(folder, name))
      Dir.mkdir(@folder)
      @listener = TCPServer.new(ADDRESS, 0)
      @thread = Thread.new { loop { converse(@listener.accept) } }
      @thread.report_on_exception = false
    end

    def port = @listener.addr[1]
    def says(text) = tap { File.write(error_path, text) }

    def close
      @thread.kill.join
      @listener.close
    end

    private

    def converse(socket)
      while (head = socket.gets("\r\n\r\n"))
        path = head[/ (\S+)/, 1]
        status = @statuses.fetch(path)
        location = "Location: https://#{ADDRESS}#{path}\r\n" if status == 301
        socket.write("HTTP/1.1 #{status} x\r\n#{location}Content-Length: 0\r\n\r\n") if status
        break unless status
      end
    ensure
      socket.close
    end
  end

  def setup
    @folder = Dir.mktmpdir
    @servers = []
  end

  def teardown
    @servers.each(&:close)
    FileUtils.rm_rf(@folder)
  end

  def test_what_one_does_not_answer_well_is_left_out_and_named
    puma = server("Puma", "/a" => 200, "/b" => 404, "/c" => 404, "/d" => nil)
    pando = server("Pando", "/a" => 302, "/b" => 404, "/c" => 200, "/d" => 200)
    rehearsal = rehearse(puma, pando, "/a", "/b", "/c", "/d")

    assert_equal([["GET /a"], 0], [rehearsal.selection.requests.map(&:to_s), rehearsal.redirected])
    assert_equal({ "answered with status 404" => ["GET /b"], "Puma answered with status 404" => ["GET /c"],
                   "Puma: the server closed the connection before the response was complete" => ["GET /d"] },
                 rehearsal.selection.left_out)
  end

  def test_requests_that_are_redirected_to_tls_are_sent_as_by_a_tls_proxy
    rehearsal = rehearse_with({ "Cookie" => "a=b" }, "/a")

    assert_predicate(rehearsal, :tls?)
    assert_equal({ "Cookie" => "a=b", "X-Forwarded-Proto" => "https" }, rehearsal.headers)
  end

  # With such a header of the user, or of the line, the second request would be the first one again.
  def test_requests_that_name_their_protocol_are_not_sent_over_tls
    http = { "x-forwarded-proto" => "http" }
    rehearsal = rehearse_with(http, "/a")

    refute_predicate(rehearsal, :tls?)
    assert_equal([http, 1], [rehearsal.headers, rehearsal.redirected])
    refute_predicate(rehearse_with({}, '{"path":"/a","headers":{"X-Forwarded-Proto":"http"}}'), :tls?)
  end

  # What is left of it says nothing about the application.
  def test_an_application_is_broken_if_half_of_its_requests_fail
    puma = server("Puma", "/a" => 200, "/b" => 200, "/c" => 200, "/d" => 404).says("no such table: puma")
    pando = server("Pando", "/a" => 200, "/b" => 500, "/c" => 503, "/d" => 404).says("no such table: posts")

    assert_match(/\A2 of 4 different requests failed with 5xx in the first pass \(Puma 0, Pando 2\): .*prepare/,
                 rehearse(puma, pando, "/a", "/b", "/c", "/d").broken)
    assert_nil(rehearse(puma, pando, "/a", "/b", "/d").broken)
  end

  def test_a_broken_application_without_a_known_reason
    broken = rehearse(server("Pando", "/a" => 200, "/b" => 500), "/a", "/b").broken

    assert_match(/\A1 of 2 different requests failed with 5xx .* \(Pando 1\): .* for the reason\.\z/, broken)
  end

  def test_the_side_that_failed_is_named_and_shown
    error = nothing_left(server("Puma", "/" => 200).says("Puma is well"),
                         server("Pando", "/" => 500).says("NoMethodError in Pando\nno such table: posts"))

    assert_match(%r{\APando: no request .* both answer without an error: GET /: Pando answered with status 500$}, error)
    assert_match(/db:prepare.*^NoMethodError in Pando$/m, error)
    refute_match(/Puma is well|has written/, error)
  end

  def test_both_are_named_if_both_failed
    error = nothing_left(server("Puma", "/" => 500).says("an error of Puma"),
                         server("Pando", "/" => 500).says("an error of Pando"))

    assert_match(%r{\APuma and Pando: no request .* both answer .* error: GET /: answered with status 500$}, error)
    assert_match(/^Output of Puma:\nan error of Puma\nOutput of Pando:\nan error of Pando\z/, error)
  end

  # A request that Puma does not answer either says nothing about it.
  def test_the_side_that_answers_nothing_is_the_one_that_failed
    error = nothing_left(server("Puma", "/" => 200, "/b" => 404).says("Puma is well"),
                         server("Pando", "/" => 401, "/b" => 401).says(""), "/", "/b")

    assert_match(/\APando: no request .*^.*--header "Cookie: /m, error)
    refute_includes(error, "Puma is well")
  end

  def test_pando_alone
    error = nothing_left(server("Pando", "/" => 500).says("an error"))

    assert_equal("Pando: no request is left that it answers without an error: GET /: answered with status 500\n" \
                 "an error", error)
  end

  private

  def server(name, statuses) = Server.new(name, @folder, statuses).tap { |server| @servers << server }

  def rehearse(*servers, **options)
    paths = servers.grep(String)
    selection = Measure::Selection.of_lines(paths, "a list", **options)
    Measure::Rehearsal.new(servers - paths, selection, {}).call
  end

  def rehearse_with(headers, line)
    name = "Pando#{@servers.size}"
    Measure::Rehearsal.new([server(name, "/a" => 301)], Measure::Selection.of_lines([line], "a list"), headers).call
  end

  def nothing_left(*arguments)
    arguments << "/" if arguments.grep(String).empty?
    assert_raises(Measure::NotMeasured) { rehearse(*arguments) }.message
  end
end
