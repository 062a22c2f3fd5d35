# frozen_string_literal: true

require "test_helper"
require "json"
require "pando/cli"
require "pando/cli/history"
require "socket"
require "stringio"
require "tmpdir"

# `pando history`: which moment it begins at, and how it asks the admin process.
class HistoryCommandTest < Minitest::Test
  SAMPLE = { "t" => Time.now.to_i, "pools" => { "web" => {} }, "private" => { "worker" => 1 }, "shared" => 1 }.freeze
  PAST = { "hour" => [SAMPLE], "day" => [], "events" => [] }.freeze

  def setup
    @folder = Dir.mktmpdir("pando-history")
    @heads = []
  end

  def teardown
    @thread&.kill
    @server&.close
    FileUtils.rm_rf(@folder)
  end

  # An admin process that gives each client the same answer.
  def answer(server, status: 200, body: JSON.generate(PAST))
    @server = server
    @thread = Thread.new do
      loop do
        client = server.accept
        @heads << client.gets("\r\n\r\n")
        client.write("HTTP/1.1 #{status} X\r\ncontent-type: application/json\r\n\r\n#{body}")
        client.close
      end
    end
  end

  def tcp = TCPServer.new("127.0.0.1", 0)

  # @return [Array(Integer, String, String)] status, stdout, stderr
  def history(config, *arguments, env: {})
    file = "#{@folder}/pando.rb"
    File.write(file, config)
    out = StringIO.new
    err = StringIO.new
    status = Pando::CLI.run(["history", "-c", file, *arguments], out: out, err: err, env: env)
    [status, out.string, err.string]
  end

  def port = @server.local_address.ip_port

  def test_a_local_address_needs_no_token
    answer(tcp)
    status, text, = history("control \"c.sock\"\nadmin \"127.0.0.1:#{port}\"\n")

    assert_equal([0, ["Memory"]], [status, text.lines.first.split.first(1)])
    assert_match(%r{\AGET /history\.json HTTP/1\.0\r\nHost: localhost\r\n\r\n\z}, @heads.first)
  end

  def test_the_unix_socket_comes_first
    answer(UNIXServer.new("#{@folder}/a.sock"))

    assert_equal(0, history("admin \"127.0.0.1:1\"\nadmin \"unix:#{@folder}/a.sock\"\n").first)
  end

  def test_at_an_address_of_other_machines_it_sends_the_token
    answer(TCPServer.new("0.0.0.0", 0))
    status, = history("admin \"0.0.0.0:#{port}\", token_env: \"SECRET\"\n", env: { "SECRET" => "0123456789abcdef" })

    assert_equal(0, status)
    assert_includes(@heads.first, "\r\nAuthorization: Bearer 0123456789abcdef\r\n")
  end

  def test_json
    answer(tcp)
    _, text, = history("admin \"127.0.0.1:#{port}\"\n", "--format", "json")

    assert_equal(%w[since samples memory changes], JSON.parse(text).keys)
  end

  def test_a_refusal_and_nonsense
    answer(tcp, status: 401, body: '{"error":"this needs the token"}')
    config = "admin \"127.0.0.1:#{port}\"\n"

    said = "pando: the server at 127.0.0.1:#{port} answered 401: this needs the token
"

    assert_equal([1, "", said], history(config))
    @thread.kill
    answer(@server, body: "<html>")
    assert_match(/answered with something that is not Pando's/, history(config).last)
  end

  def test_another_version
    answer(tcp, body: "{}")

    assert_match(/another version of Pando/, history("admin \"127.0.0.1:#{port}\"\n").last)
  end

  # As if it had been killed: the next one answers.
  def test_an_admin_process_that_ends_is_asked_again
    @server = tcp
    closed = 0
    @thread = Thread.new do
      2.times do
        @server.accept.close
        closed += 1
      end
      answer(@server)
    end

    assert_equal([0, 2], [history("admin \"127.0.0.1:#{port}\"\n").first, closed])
  end

  def test_an_address_that_is_gone_is_passed_over
    answer(tcp)

    assert_equal(0, history("admin \"unix:#{@folder}/gone.sock\"\nadmin \"127.0.0.1:#{port}\"\n").first)
  end

  def test_a_host_without_an_address_is_passed_over_and_named
    answer(tcp)
    unknown = "admin \"no-such-host.invalid:9394\"\n"

    assert_equal(0, history("#{unknown}admin \"127.0.0.1:#{port}\"\n").first)
    status, _, said = history(unknown)
    assert_equal(2, status)
    assert_match(/\Apando: no server answers at no-such-host\.invalid:9394 \(getaddrinfo/, said)
  end

  def test_without_a_server_and_without_an_address
    @server = tcp
    config = "admin \"127.0.0.1:#{port}\"\n"
    @server.close

    assert_match(/\Apando: no server answers at 127\.0\.0\.1:\d+ \(Connection refused\)/, history(config).last)
    assert_match(/the admin process remembers the past: write admin/, history("control \"c.sock\"\n").last)
  end

  def test_nothing_is_known
    answer(tcp, body: JSON.generate(PAST.merge("hour" => [])))

    assert_equal([1, "", "pando: #{Pando::CLI::Past::NONE}\n"], history("admin \"127.0.0.1:#{port}\"\n"))
  end

  def test_a_pool
    answer(tcp)
    config = "admin \"127.0.0.1:#{port}\"\n"

    assert_equal(0, history(config, "web").first)
    assert_equal([2, "pando: there is no pool jobs, but web\n"], history(config, "jobs").values_at(0, 2))
    assert_match(/unexpected argument "b"/, history(config, "web", "b").last)
  end

  def since(text)
    command = Pando::CLI::History.new(text ? ["--since", text] : [], nil)
    command.send(:since, Time.new(2031, 5, 4, 12, 30, 0))
  end

  def test_the_moment_that_it_begins_at
    assert_equal(Time.new(2031, 5, 4, 11, 30), since(nil))
    assert_equal(Time.new(2031, 5, 4, 9, 5), since("9:05"))
    assert_equal(Time.new(2031, 5, 3, 14, 0), since("14:00")) # today's is still to come
    assert_equal(Time.new(2031, 5, 4, 12, 0, 7), since("12:00:07"))
    assert_equal(Time.new(2031, 5, 2, 14, 0), since("2031-05-02 14:00"))
    assert_equal(Time.new(2031, 5, 4, 10, 30), since("2h"))
    assert_equal(Time.new(2031, 5, 4, 12, 0), since("30m"))
    assert_equal(Time.new(2031, 5, 3, 12, 30), since("1d"))
    assert_equal(Time.new(2031, 5, 3), since("2031-05-03"))
    assert_equal(Time.utc(2031, 5, 3, 1, 2, 3), since("2031-05-03T01:02:03.000Z"))
  end

  def test_no_moment
    ["25:00", "24:00", "12:60", "2031-02-30 10:00", "2031-13-04 10:00", "soon", "2"].each do |text|
      error = assert_raises(Pando::UsageError, text) { since(text) }
      assert_match(/--since: must be a time such as 14:00/, error.message)
    end
    ["2031-05-04 14:00", "2032-05-04T12:30:00.5Z"].each do |text|
      assert_match(/is in the future/, assert_raises(Pando::UsageError) { since(text) }.message)
    end
  end
end
