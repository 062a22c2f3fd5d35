# frozen_string_literal: true

require "test_helper"
require "fiddle"
require "socket"
require "tmpdir"
require "pando/doctor"
require "support/waiting"

# The doctor's requests to one worker.
class DoctorConversationTest < Minitest::Test
  include Support::Waiting

  Doctor = Pando::Doctor
  Folder = Struct.new(:folder)
  PATIENCE = 0.2
  WITHIN = 10 # seconds

  def setup
    @folder = Dir.mktmpdir
    @worker = Process.spawn("sleep", "1000")
    @actor = Doctor::Stage::Actor.new("worker", 0, 1, @worker)
    @listener = UNIXServer.new(File.join(@folder, "0.1.#{@worker}.http"))
  end

  def teardown
    @listener.close
    Process.kill("KILL", @worker) unless @ended
    Process.wait(@worker) unless @ended
    FileUtils.rm_rf(@folder)
  end

  def test_a_worker_that_does_not_read_a_large_body_is_stuck
    answer = answer_to(body: "x" * (1 << 20))

    assert_predicate answer, :stuck?
    assert_equal @worker, answer.killed
    @ended = Process.wait(@worker)
  end

  # Early hints, or 100 Continue.
  def test_interim_responses_are_skipped
    hints = "HTTP/1.1 103 Early Hints\r\nlink: </a.css>\r\n\r\n"
    final = "HTTP/1.1 302 Found\r\nLocation: /login\r\n\r\nbody"

    assert_equal [302, "/login"], outcome(hints, final)
    assert_equal [302, "/login"], outcome("HTTP/1.1 100 Continue\r\n\r\n#{hints}#{final}")
    assert_equal [302, "/login"], outcome(*[hints] * 1000, final)
    assert_equal [nil, nil], outcome(hints)
  end

  def test_a_response_that_switches_protocols_is_final
    assert_equal [101, nil], outcome("HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\nHTTP/1.1 200 OK\r\n\r\n")
  end

  def test_a_large_body_arrives_whole
    body = "x" * (1 << 20)
    worker = Thread.new do
      @listener.accept.then do |client|
        received = client.gets("\r\n\r\n") && client.read(body.bytesize)
        client.write("HTTP/1.1 201 Created\r\n\r\n")
        client.close
        received
      end
    end

    assert_equal 201, answer_to(body: body, patience: WITHIN).status
    assert_equal body, worker.value
  end

  def test_a_redirection_is_known_with_its_target
    head = "HTTP/1.1 302 Found\r\nset-cookie: #{"a" * 1000}\r\n"

    assert_equal [302, "/login"], outcome(head, "Location: /login\r\n\r\nlocation: /other")
  end

  # Each CPU has its own numbers of system calls.
  def test_only_where_its_number_is_known_futex_is_waiting_for_a_lock
    cpu = RbConfig::CONFIG["host_cpu"]
    number = Doctor::Conversation::FUTEX[cpu] or skip("a CPU whose number is unknown")
    pid = fork { wait_in(number) }
    wait_until(message: "the child is in futex(2)") { File.read("/proc/#{pid}/syscall").to_i == number }

    assert_equal([true, false], [cpu, "riscv64"].map { |one| waits_for_a_lock?(pid, one) })
  ensure
    Process.kill("KILL", pid)
    Process.wait(pid)
  end

  private

  def wait_in(number)
    types = [Fiddle::TYPE_LONG, Fiddle::TYPE_VOIDP, *[Fiddle::TYPE_LONG] * 5]
    Fiddle::Function.new(Fiddle.dlopen(nil)["syscall"], types, Fiddle::TYPE_LONG).call(number, "\0" * 4, 0, 0, 0, 0, 0)
  end

  def waits_for_a_lock?(pid, cpu)
    known = RbConfig::CONFIG["host_cpu"]
    RbConfig::CONFIG["host_cpu"] = cpu
    actor = Doctor::Stage::Actor.new("worker", 0, 1, pid)
    Doctor::Conversation.new(Folder.new(@folder), actor, PATIENCE).send(:lock?)
  ensure
    RbConfig::CONFIG["host_cpu"] = known
  end

  # @return [Array] the status and the location that the doctor reads of a worker's response
  def outcome(*texts)
    worker = Thread.new do
      client = @listener.accept
      client.gets("\r\n\r\n")
      texts.each { |text| client.write(text) }
      client.close
    end
    answer_to(body: "", patience: WITHIN).to_h.values_at(:status, :location)
  ensure
    worker.join
  end

  def answer_to(body:, patience: PATIENCE)
    request = Doctor::Request.new(verb: "POST", target: "/", headers: {}, body: body)
    asking = Thread.new { Doctor::Conversation.new(Folder.new(@folder), @actor, patience).request(request) }
    assert asking.join(WITHIN), "the doctor waits for ever"
    asking.value
  end
end
