# frozen_string_literal: true

require "test_helper"
require "support/servers"

# A process that the app forks in direct mode has a copy of the client's connection.
class DirectForkTest < Minitest::Test
  include Support::Servers

  APP = <<~RUBY
    run ->(_env) { [200, {}, [fork { sleep }.to_s]] }
  RUBY

  def test_it_does_not_keep_the_client_waiting
    server = serve(app: APP, config: "reactor false\nworkers 1\nrefork false")
    socket = server.connect
    socket.write("GET / HTTP/1.0\r\n\r\n")
    answer = +""
    answer << socket.readpartial(4096) while socket.wait_readable(90) && !socket.eof?
    pid = answer[/\d+\z/].to_i

    assert_match(/\r\n\r\n\d+\z/, answer)
    assert_predicate socket, :eof?
    assert_equal 1, Process.kill(0, pid), "while that process lives"
  ensure
    Process.kill("KILL", pid) if pid
    socket&.close
  end
end
