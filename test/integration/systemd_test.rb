# frozen_string_literal: true

require "test_helper"
require "socket"
require "support/servers"

# The real server under something that listens as systemd does.
class SystemdNotifyTest < Minitest::Test
  include Support::Servers

  def test_from_ready_to_stopping
    folder = Dir.mktmpdir
    manager = Socket.new(:UNIX, :DGRAM, 0)
    manager.bind(Socket.sockaddr_un(File.join(folder, "notify")))
    server = serve(app: "run ->(_env) { [200, {}, [ENV.key?('NOTIFY_SOCKET').to_s]] }", config: "workers 2",
                   env: { "NOTIFY_SOCKET" => File.join(folder, "notify"), "WATCHDOG_USEC" => "1000000" })

    hear(manager, /\AREADY=1\nMAINPID=#{server.pid}\z/)
    hear(manager, /\ASTATUS=2 of 2 workers serve\z/)
    2.times { hear(manager, /\AWATCHDOG=1\z/) }
    assert_equal("false", server.get("/").body)
    server.signal("HUP")
    hear(manager, /\ARELOADING=1\n/)
    hear(manager, /\AREADY=1\z/)
    assert_predicate(server.stop, :success?)
    hear(manager, /\ASTOPPING=1\n/)
  ensure
    manager&.close
    FileUtils.rm_rf(folder)
  end

  private

  # Others may come before it.
  def hear(manager, wanted)
    heard = []
    until heard.last&.match?(wanted)
      assert(manager.wait_readable(30), "no #{wanted.inspect}, but #{heard.inspect}")
      heard << manager.recv(4096)
    end
  end
end
