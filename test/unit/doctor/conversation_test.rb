# frozen_string_literal: true

require "test_helper"
require "socket"
require "tmpdir"
require "pando/doctor"

# The doctor's requests to one worker.
class DoctorConversationTest < Minitest::Test
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

  private

  def answer_to(body:, patience: PATIENCE)
    request = Doctor::Request.new(verb: "POST", target: "/", headers: {}, body: body)
    asking = Thread.new { Doctor::Conversation.new(Folder.new(@folder), @actor, patience).request(request) }
    assert asking.join(WITHIN), "the doctor waits for ever"
    asking.value
  end
end
