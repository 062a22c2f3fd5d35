# frozen_string_literal: true

require "test_helper"
require "pando/cluster/monitor"

class ClusterLinkTest < Minitest::Test
  Link = Pando::Cluster::Link
  Message = Pando::Cluster::Message

  def setup
    GC.disable # it would close what others have forgotten, while we count descriptors
    @ours, @theirs = Link.pair
  end

  def teardown
    GC.enable
    [@ours, @theirs].each { |link| link.close unless link.closed? }
  end

  def raw(bytes, *ios)
    @theirs.to_io.sendmsg(bytes, 0, nil, *(Socket::AncillaryData.unix_rights(*ios) unless ios.empty?))
  end

  def open_descriptors = Dir.children("/proc/self/fd").size

  def test_a_message_and_its_sender
    assert @theirs.send(Message.new(:ready, seat: 7))
    packet = @ours.receive

    assert_equal [:ready, 7, Process.pid, []],
                 [packet.message.kind, packet.message.seat, packet.sender, packet.descriptors]
    assert_equal :nothing, @ours.receive
  end

  def test_the_kernel_names_the_sender
    Process.wait(pid = fork { @theirs.send(Message.new(:ready)) && exit!(0) })

    assert_equal pid, @ours.receive.sender
  end

  def test_a_descriptor_goes_with_an_order
    reader, writer = IO.pipe
    @ours.send(Message.new(:spawn), [writer])
    writer.close
    IO.open(@theirs.receive.descriptors.first, "w") { |io| io.syswrite("through") }

    assert_equal "through", reader.read
  ensure
    reader.close
  end

  # Of all processes of this user together; root may have as many as it likes.
  def test_too_many_descriptors_on_their_way_are_a_full_queue
    Pando::Sys.stub(:send_record, ->(*) { raise Errno::ETOOMANYREFS }) { refute @ours.send(Message.new(:leave)) }
  end

  def test_the_end_of_a_link
    @theirs.send(Message.new(:ready))
    @theirs.close

    assert_equal :ready, @ours.receive.message.kind
    assert_equal :closed, @ours.receive
    refute @ours.send(Message.new(:leave))
  end

  def test_an_order_that_nobody_reads_does_not_block
    sent = 0
    sent += 1 while @ours.send(Message.new(:leave, text: "x" * 900))

    assert_operator sent, :>, 1
    assert_operator sent, :<, 10_000
  end

  def test_a_link_closed_here_takes_no_orders
    @ours.close

    refute @ours.send(Message.new(:leave))
    assert_predicate @ours, :closed?
  end

  def test_what_is_none_of_ours_is_told_and_its_descriptors_are_closed
    pipe = IO.pipe
    before = open_descriptors
    ["x", "x" * 2000, "\0" * 16, ""].each do |bytes|
      raw(bytes, *pipe)
      assert_raises(Link::Malformed) { @ours.receive }
    end

    assert_equal before, open_descriptors
    assert_equal :nothing, @ours.receive
  ensure
    pipe.each(&:close)
  end

  def test_whether_the_other_end_is_dead
    refute_predicate @theirs, :dead?
    @ours.send(Message.new(:leave))
    refute_predicate @theirs, :dead?
    assert_equal :leave, @theirs.receive.message.kind
    @ours.close

    assert_predicate @theirs, :dead?
  end

  def test_a_link_by_its_number_is_not_for_programs
    link = Link.for_fd(Pando::Sys.disown(@theirs.to_io.dup))

    assert_predicate link.to_io, :close_on_exec?
    assert link.send(Message.new(:ready))
    assert_equal :ready, @ours.receive.message.kind
  ensure
    link&.close
  end

  def test_an_order_to_fork_brings_the_childs_end
    new_ours, new_theirs = Link.pair
    @ours.send(Message.new(:spawn, role: :worker, seat: 5, slot: 6, generation: 7), [new_theirs])
    new_theirs.close
    order = Pando::Cluster::ForkOrder.from(@theirs.receive)

    assert_equal [:worker, 5, 6, 7], [order.role, order.seat, order.slot, order.generation]
    refute_predicate order, :cancelled?
    order.link.send(Message.new(:ready))
    assert_equal :ready, new_ours.receive.message.kind
    new_ours.close
    assert_predicate order, :cancelled?
  ensure
    [new_ours, order&.link].compact.each { |link| link.close unless link.closed? }
  end

  def test_the_order_of_a_worker_behind_the_reactor_carries_its_lane
    theirs_of_new, *extra = [*Link.pair, *UNIXSocket.pair(:SEQPACKET)]
    eventfd, memory = %i[eventfd lane].map { |kind| IO.for_fd(Pando::HTTP::Channel.public_send(kind), "r+b") }
    @ours.send(Message.new(:spawn, lane: 9), [theirs_of_new, eventfd, extra.last, memory])
    order = Pando::Cluster::ForkOrder.from(@theirs.receive)

    assert_equal 9, order.lane_descriptors.number
    extra[1].sendmsg("ticket")
    assert_equal "ticket", order.lane_descriptors.socket.recv(100)
    order.close
    assert(order.lane_descriptors.ios.all?(&:closed?))
  ensure
    [theirs_of_new, *extra, eventfd, memory].compact.each(&:close)
  end

  def test_an_order_without_its_descriptor_is_none_and_what_is_no_lane_is_closed
    @ours.send(Message.new(:spawn))
    assert_nil Pando::Cluster::ForkOrder.from(@theirs.receive)
    extra = Link.pair
    before = open_descriptors
    @ours.send(Message.new(:spawn), [extra.first, extra.last, $stdin])
    order = Pando::Cluster::ForkOrder.from(@theirs.receive)

    assert_equal before + 1, open_descriptors
  ensure
    [*extra, order&.link].compact.each(&:close)
  end
end
