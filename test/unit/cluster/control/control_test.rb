# frozen_string_literal: true

require "test_helper"
require "socket"
require "tmpdir"
require "pando/cluster/monitor"
require_relative "../support/fakes"

# The control socket at the end of the server.
class ControlEndTest < Minitest::Test
  include ClusterSupport::Listening

  Control = Pando::Cluster::Control
  Cluster = Struct.new(:drain) { def ending? = false }
  Drain = Class.new { def stop(_reason) = nil }

  def test_another_server_may_start_here_when_the_end_is_told
    poller = Pando::Sys::Poller.new
    Dir.mktmpdir do |folder|
      path = File.join(folder, "control.sock")
      control = Control.open(Control::Spec.new(path: path, required: true), Cluster.new(Drain.new), poller)
      session = ask(control, path, "stop")
      said = []
      session.define_singleton_method(:finish) { |word, **| said << [word, File.exist?(path)] }
      Pando::Events.emit("monitor.stopped", pid: 1, status: 0)
      control.close

      assert_equal [["ok", false]], said
    end
  ensure
    @client&.close
    poller.close
  end

  private

  def ask(control, path, line)
    @client = UNIXSocket.new(path)
    control.hear(:newcomer)
    @client.puts(line)
    control.instance_variable_get(:@sessions).first.tap { |session| control.hear(session) }
  end
end
