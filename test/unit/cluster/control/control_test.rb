# frozen_string_literal: true

require "test_helper"
require "socket"
require "tmpdir"
require "pando/cluster/monitor"
require_relative "../support/fakes"

# The control socket at the start and at the end of the server.
class ControlPlaceTest < Minitest::Test
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

  def test_a_fault_in_the_course_of_a_task_ends_only_that
    poller = Pando::Sys::Poller.new
    Dir.mktmpdir do |folder|
      path = File.join(folder, "control.sock")
      control = Control.open(Control::Spec.new(path: path, required: true), Cluster.new(Drain.new), poller)
      session = ask(control, path, "stop")
      session.task.define_singleton_method(:check) { raise "boom" }
      2.times { control.proceed }

      assert_match(/^failed .*boom/, @client.read)
      assert_equal(["boom (RuntimeError)"], events("control.failed").map { |event| event[:reason] })
      control.close
    end
  ensure
    @client&.close
    poller.close
  end

  def test_the_folder_of_the_default_path_is_made
    open_default do |path, unavailable|
      assert File.socket?(path)
      assert_empty unavailable
    end
  end

  def test_a_folder_that_cannot_be_made_is_told_with_the_remedy
    open_default(prepare: ->(path) { File.write(File.dirname(path), "") }) do |path, unavailable|
      assert_equal 1, unavailable.size
      assert_includes unavailable.first[:reason], path
      assert_match(/\Apando status cannot ask this server: write control "PATH"/, unavailable.first[:advice])
    end
  end

  def test_another_server_of_the_folder_is_named
    open_default(prepare: ->(path) { listen(path) }) do |path, unavailable|
      reasons = unavailable.map { |event| event[:reason] }

      assert_equal ["another Pando of this folder runs (pid #{Process.pid}) and has #{path}"], reasons
    end
  end

  def test_the_same_path_written_into_the_configuration_keeps_its_socket
    [[false, true], [true, false]].each do |before, after|
      open_default(required: before) do |path, unavailable, control|
        file = File.stat(path).ino
        control.prepare(Control::Spec.new(path: path, required: after))
        control.adopt

        assert_equal file, File.stat(path).ino
        ask(control, path, "stop")
        assert_empty unavailable
      end
    end
  end

  def test_another_path_moves_the_socket
    open_default do |path, _unavailable, control|
      other = "#{path}.other"
      2.times do
        control.prepare(Control::Spec.new(path: other, required: true))
        assert([path, other].all? { |one| File.socket?(one) })
        control.give_up
        assert_equal ["pando.sock"], Dir.children(File.dirname(path))
      end
      control.prepare(Control::Spec.new(path: other, required: true))
      control.adopt

      refute File.exist?(path)
      ask(control, other, "stop")
      control.prepare(nil)
      control.adopt
      refute File.exist?(other)
    end
  end

  def test_a_required_socket_that_cannot_be_opened_keeps_the_one_there_is
    open_default do |path, _unavailable, control|
      assert_raises(Pando::BootError) do
        control.prepare(Control::Spec.new(path: File.join(path, "none"), required: true))
      end
      control.give_up

      ask(control, path, "stop")
    end
  end

  # It may ask, and that must not keep operators away.
  def test_a_service_commands_nothing_and_has_few_sessions
    poller = Pando::Sys::Poller.new
    control = Control.open(nil, Cluster.new(Drain.new), poller)
    service = Object.new
    clients = %w[stop refork nonsense].map { |line| question(control, service, line) }

    answers = clients.map { |client| client.gets("\n") }
    assert_equal ["failed reason=a%20service%20may%20only%20ask\n"] * 3, answers
    waiting = Array.new(Control::SESSIONS_OF_SERVICE + 2) { question(control, service, nil) }
    ends = waiting.map { |client| client.read_nonblock(1, exception: false) }
    assert_equal [nil, nil, *[:wait_readable] * Control::SESSIONS_OF_SERVICE], ends
    control.close
  ensure
    [*clients, *waiting].each(&:close)
    poller.close
  end

  private

  def question(control, service, line)
    ours, theirs = UNIXSocket.pair
    ours.puts(line) if line
    control.welcome(Socket.for_fd(theirs.fileno).tap { theirs.autoclose = false }, service)
    ours
  end

  def listen(path)
    Dir.mkdir(File.dirname(path))
    @listening = UNIXServer.new(path)
  end

  # Opens the socket at the default path of a folder without tmp.
  def open_default(prepare: nil, required: false)
    poller = Pando::Sys::Poller.new
    unavailable = []
    subscription = Pando::Events.subscribe("control.unavailable") { |event| unavailable << event }
    Dir.mktmpdir do |folder|
      path = File.join(folder, "tmp/pando.sock")
      prepare&.call(path)
      Dir.mkdir(File.dirname(path)) if required
      control = Control.open(Control::Spec.new(path: path, required: required), Cluster.new(Drain.new), poller)
      yield path, unavailable, control
      control.close
    end
  ensure
    Pando::Events.unsubscribe(subscription)
    [@listening, @client].each { |one| one&.close }
    poller.close
  end

  def ask(control, path, line)
    @client = UNIXSocket.new(path)
    control.hear(:newcomer)
    @client.puts(line)
    control.instance_variable_get(:@sessions).first.tap { |session| control.hear(session) }
  end
end
