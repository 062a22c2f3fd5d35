# frozen_string_literal: true

require "test_helper"
require "support/servers"

# RLIMIT_FSIZE: a file may not be longer. It costs the request that needs more, and a server that cannot live with it
# says so.
class FileSizeLimitTest < Minitest::Test
  include Support::Servers

  MIB = 1024**2

  def test_a_body_that_is_too_long_is_refused_and_the_reactor_lives
    server = limited(220 * MIB, "workers 1")
    assert_equal 200, server.get("/").status
    reactor = server.tree.titled("reactor").map(&:pid)
    seen = server.wait_for("requests.shed") { assert_equal 503, upload(server, 222 * MIB) }

    assert_equal "RLIMIT_FSIZE (1)", seen["reason"]
    assert_equal 200, server.get("/").status
    assert_equal reactor, server.tree.titled("reactor").map(&:pid)
    assert_empty server.events("reactor.lost")
  end

  def test_a_body_that_is_too_long_is_refused_in_direct_mode_and_the_worker_lives
    server = limited(80 * MIB, "workers 1\nreactor false")
    workers = server.workers.map(&:pid)
    seen = server.wait_for("request.refused") { assert_equal 503, upload(server, 82 * MIB) }

    assert_match(/RLIMIT_FSIZE/, seen["reason"])
    assert_equal 200, server.get("/").status
    assert_equal workers, server.workers.map(&:pid)
  end

  def test_what_the_app_writes_is_its_own_error
    server = limited(80 * MIB, "workers 1\nreactor false", app: <<~RUBY)
      run(lambda do |_env|
        File.write("big", "x" * 85_000_000)
      rescue Errno::EFBIG
        [200, {}, ["too big"]]
      end)
    RUBY

    assert_equal "too big", server.get("/").body
  end

  def test_a_limit_that_the_server_cannot_live_with_ends_the_boot_with_a_reason
    ["reactor true", "reactor false"].each do |mode|
      server = limited(64 * 1024, "workers 1\n#{mode}", ready: false)

      assert_equal 1, server.wait_for_exit.exitstatus
      assert_match(/\Apando: a file may have 65536 bytes here .*`ulimit -f unlimited`.*LimitFSIZE/,
                   server.output.lines.last)
    end
  end

  private

  def limited(bytes, config, **options)
    serve(config: config, wrapper: ["prlimit", "--fsize=#{bytes}"], **options)
  end

  def upload(server, bytes)
    client = server.connect
    client.write("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: #{bytes}\r\n\r\n")
    piece = "x" * MIB
    begin
      (bytes / MIB).times { client.write(piece) }
    rescue Errno::EPIPE, Errno::ECONNRESET
      nil # it is refused, and drained for a while
    end
    client.gets.to_s[/ (\d{3}) /, 1].to_i
  ensure
    client&.close
  end
end
