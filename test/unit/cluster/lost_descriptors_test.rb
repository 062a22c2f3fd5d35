# frozen_string_literal: true

require "test_helper"
require "pando/pages/recording"
require "support/in_child"
require "support/no_descriptors"
require_relative "support/kin"
require_relative "support/payload"

# Records that come without their descriptors, because the process that reads them may have no more. Nobody has broken
# the protocol, and nobody ends for it.
class ClusterLostDescriptorsTest < Minitest::Test
  include ClusterSupport::Listening
  include ClusterSupport::Kin
  include Support::NoDescriptors

  def test_a_record_of_any_kind_is_read
    ours, theirs = Link.pair
    %i[spawn serve_out record_pages lane client].each do |kind|
      theirs.send(Message.new(kind, text: "a text"), [$stdin, $stdout])
      packet = without_free_descriptors { ours.receive }

      assert_equal [kind, "a text", Process.pid, [], true],
                   [packet.message.kind, packet.message.text, packet.sender, packet.descriptors, packet.stripped]
    end
  ensure
    [ours, theirs].each(&:close)
  end

  # That is no lack of room, but a broken protocol.
  def test_a_record_with_too_many_is_not_stripped
    ours, theirs = UNIXSocket.pair(:SEQPACKET)
    rights = Socket::AncillaryData.unix_rights(*Array.new(20) { $stdin })
    theirs.sendmsg("text", 0, nil, rights)
    text, _sender, descriptors, stripped = Pando::Sys.receive_record(ours, 100)

    assert_nil text
    refute stripped
  ensure
    descriptors&.each { |fd| Pando::Sys.close_fd(fd) }
    [ours, theirs].each(&:close)
  end

  def test_some_of_them_do_not_stay_open
    ours, theirs = Link.pair
    GC.disable # it would close what others have forgotten
    theirs.send(Message.new(:record_pages), [$stdin, $stdout])
    spare = IO.sysopen(File::NULL)
    before = Dir.children("/proc/self/fd").size
    packet = without_free_descriptors do
      Pando::Sys.close_fd(spare)
      ours.receive
    end

    assert_equal [[], true], [packet.descriptors, packet.stripped]
    assert_equal before - 1, Dir.children("/proc/self/fd").size
  ensure
    GC.enable
    [ours, theirs].each(&:close)
  end

  def test_garbage_is_garbage
    ours, theirs = Link.pair
    theirs.to_io.sendmsg("garbage", 0, nil, Socket::AncillaryData.unix_rights($stdin))

    assert_raises(Link::Malformed) { without_free_descriptors { ours.receive } }
  ensure
    [ours, theirs].each(&:close)
  end

  # It finds its own end closed, and may ask again.
  def test_a_question_of_a_service_is_dropped
    service = read_question(:service)

    assert_empty @control.questions
    refute service.mute
    assert_empty events("link.malformed")
  end

  def test_that_of_another_child_still_breaks_the_protocol
    assert read_question(:worker).mute
  end

  private

  def read_question(role)
    go, gate = IO.pipe
    child = adopted(role) { |link| go.read(1) && link.send(Message.new(:client), UNIXSocket.pair.first(1)) }
    gate.syswrite("x")
    assert child.link.to_io.wait_readable(PATIENCE)
    without_free_descriptors { @inbox.read(child) }
    child
  ensure
    [go, gate].each(&:close)
  end
end

# A worker's orders.
class ClusterWorkerLostDescriptorsTest < Minitest::Test
  include ClusterSupport::Listening
  include Support::InChild
  include Support::NoDescriptors

  Message = Pando::Cluster::Message

  def setup
    super
    @worker = Pando::Cluster::Worker.allocate
    @ours, theirs = Pando::Cluster::Link.pair
    payload = ClusterSupport::Payload.new
    payload.define_singleton_method(:record_pages) { |*order| Pando::Pages::Recorder.start(*order) }
    { link: theirs, seat: 0, slot: 3, generation: 2, lanes: [], leaving: false,
      context: Pando::Cluster::Context.new(payload: payload) }.each do |name, value|
      @worker.instance_variable_set(:"@#{name}", value)
    end
  end

  def teardown
    [@ours, @worker.instance_variable_get(:@link)].each(&:close)
    super
  end

  def test_it_says_why_it_records_no_pages
    obey(:record_pages, "pages jobs=1 seconds=5")
    report = @ours.receive.message

    assert_equal [:pages_failed, 3, "Too many open files"], [report.kind, report.slot, report.text]
    assert_stays
  end

  def test_it_says_that_it_cannot_serve_out_a_listener
    obey(:serve_out, "0")

    assert_equal(["Too many open files - clients of a listener that a reload has removed"],
                 events("accept.failed").map { |event| event[:reason] })
    assert_stays
  end

  # All threads are to have a lane, and a start that fails is tried again.
  def test_it_does_not_start_without_a_lane
    error = assert_raises(Errno::EMFILE) { obey(:lane) }

    assert Pando::Cluster::PassingFault.of?(error)
    assert_stays
  end

  private

  def obey(kind, text = "")
    @ours.send(Message.new(kind, text: text), [$stdin, $stdout])
    without_free_descriptors { @worker.send(:read_orders) }
  end

  def assert_stays
    refute @worker.instance_variable_get(:@leaving)
    assert_equal :nothing, @ours.receive
  end
end
