# frozen_string_literal: true

require "test_helper"
require_relative "support/kin"

class ClusterInboxTest < Minitest::Test
  include ClusterSupport::Listening
  include ClusterSupport::Kin

  def test_a_child_is_adopted_by_its_first_report
    child = born { |link| link.send(Message.new(:adopted, seat: 999, slot: 9, generation: 99)) }
    hear(child)

    assert_equal [@pids.last, :adopted, 0, 0], [child.pid, child.state, child.slot, child.generation]
    assert_equal [[:child_adopted, child]], @observer.calls
    assert watched?(child.pidfd)
  end

  # Forked to order, it has said nothing: its end of the link gives it away.
  def test_a_child_that_has_not_reported_is_found_and_adopted
    bystander = adopted
    child, theirs = order
    child.expect(theirs, nil)
    refute @inbox.adopt_unreported(child), "it is not born"
    @pids << fork { stay }
    theirs.close

    assert @inbox.adopt_unreported(child)
    assert_equal [@pids.last, :adopted], [child.pid, child.state]
    refute @inbox.adopt_unreported(bystander), "it has reported"
  end

  # Its lane was found damaged, for one.
  def test_a_child_that_was_condemned_before_it_was_adopted_is_killed_then
    child = born { |link| link.send(Message.new(:adopted)) }
    child.kill("it is of no use")
    hear(child)

    ended(child)
    assert_predicate child, :condemned?
  end

  def test_a_child_comes_up
    child = adopted { |link| link.send(Message.new(:ready)) }
    hear(child) until child.ready?

    assert_equal [[:child_ready, child]], told(:child_ready)
    assert_nil child.deadline
  end

  def test_a_failure_comes_with_its_backtrace
    child = adopted do |link|
      3.times { |part| link.send(Message.new(:detail, text: "part #{part} ")) }
      link.send(Message.new(:failed, text: "it failed"))
    end
    hear(child) until child.failure

    assert_equal "it failed", child.failure
    assert_equal "part 0 part 1 part 2 ", child.detail
  end

  def test_a_backtrace_has_an_end
    child = adopted { |link| 60.times { link.send(Message.new(:detail, text: "x" * 900)) } }
    hear(child) until child.detail.to_s.bytesize > 32_000
    ended_size = child.detail.bytesize

    assert_operator ended_size, :<, 34_000
  end

  def test_lines_that_a_log_has_lost_are_counted
    child = adopted { |link| link.send(Message.new(:lines_lost, text: "12")) }
    hear(child) while told(:lines_lost).empty?

    assert_equal [[:lines_lost, child, 12]], told(:lines_lost)
  end

  def test_lines_of_no_number_are_none
    ["-3", "many", "9999999999", ""].each do |text|
      child = adopted { |link| link.send(Message.new(:lines_lost, text: text)) }
      hear(child) until child.mute

      assert_empty told(:lines_lost)
    end
  end

  def test_a_reader_that_was_lost_is_told_of
    child = adopted { |link| link.send(Message.new(:reader_lost, text: "somebody")) }
    hear(child) while told(:reader_lost).empty?

    assert_equal [[:reader_lost, child, "somebody"]], told(:reader_lost)
  end

  # Each report that a child may make reaches the method that takes it, and is no breach of the protocol.
  def test_each_report_is_passed_on_with_its_text
    { checking: :child_checking, signalled: :child_signalled, replacement_wanted: :child_wants_replacement,
      state_changed: :state_reported, reader_lost: :reader_lost }.each do |kind, name|
      child = adopted { |link| link.send(Message.new(kind, text: "a text")) }
      hear(child) while told(name).empty?

      assert_equal [[name, child, "a text"]], told(name)
      refute child.mute
    end
  end

  def test_a_service_may_ask
    child = adopted(:service) { |link| link.send(Message.new(:client), UNIXSocket.pair.first(1)) }
    hear(child) while @control.questions.empty?

    assert_equal [child], @control.questions.map(&:last)
    refute child.mute
  end

  # It breaks the protocol, as does a service with too many descriptors, or none, or one of no socket.
  def test_nobody_else_may_ask
    pair = UNIXSocket.pair
    [[:worker, pair.first(1)], [:service, pair], [:service, []], [:service, [@stay.first]]].each do |role, descriptors|
      child = adopted(role) { |link| link.send(Message.new(:client), descriptors) }
      before = Dir.children("/proc/self/fd").size
      hear(child) until child.mute

      assert_empty @control.questions
      assert_operator Dir.children("/proc/self/fd").size, :<=, before
    end
  ensure
    pair.each(&:close)
  end

  def test_whoever_is_no_child_of_ours_is_not_adopted
    child, theirs = order
    reader, writer = IO.pipe
    @pids << fork do
      fork { theirs.send(Message.new(:adopted)) && writer.syswrite("sent") && stay }
      stay
    end
    reader.readpartial(10)
    hear(child)
    theirs.close

    assert_equal [[:child_lost, child, nil]], @observer.calls
    assert_match(/\Apid \d+ is no child of the monitor\z/, child.reason)
    assert_nil child.pidfd
  end

  def test_whoever_ended_and_was_waited_for_is_not_adopted
    child = born { |link| link.send(Message.new(:adopted)) && exit!(0) }
    Process.wait(@pids.last)
    hear(child)

    assert_equal [[:child_lost, child, nil]], @observer.calls
  end

  def test_another_process_cannot_speak_for_a_child
    child, theirs = order
    2.times do |turn|
      @pids << fork { theirs.send(Message.new(turn.zero? ? :adopted : :ready)) && stay }
      hear(child)
    end
    theirs.close

    assert_equal [@pids.first, "it broke the protocol: a report by pid #{@pids.last}"], [child.pid, child.verdict]
    refute_predicate child, :ready?
    ended(child)
  end

  def test_a_malformed_record_ends_its_sender_only
    other = adopted
    child = adopted { |link| ["garbage", "x" * 5000, "\0" * 16].each { |bytes| link.to_io.send(bytes, 0) } }
    hear(child) until child.condemned?
    ended(child)

    assert_match(/broke the protocol/, child.verdict)
    assert_equal 1, events("link.malformed").size
    refute watched?(child.link)
    assert_equal :adopted, other.state
    assert_nil other.pidfd.reap
  end

  def test_whoever_broke_the_protocol_is_not_read_again
    said, mouth = IO.pipe
    child = born do |link|
      link.send(Message.new(:adopted))
      20.times { |turn| turn.even? ? link.to_io.send("garbage", 0) : link.send(Message.new(:ready)) }
      mouth.syswrite("all")
    end
    said.readpartial(3)
    hear(child)
    ended(child)
    3.times { @inbox.read(child, 1000) }

    assert_equal 1, events("link.malformed").size
    assert_empty told(:child_ready)
  end

  def test_a_malformed_first_record_drops_the_order
    child = born { |link| link.to_io.send("garbage", 0) }
    hear(child)

    assert_equal [[:child_lost, child, nil]], @observer.calls
    assert_match(/broke the protocol/, child.reason)
  end

  def test_descriptors_in_a_report_are_closed
    GC.disable # it would close what others have forgotten
    before = Dir.children("/proc/self/fd").size
    child = adopted do |link|
      pipe = IO.pipe
      link.send(Message.new(:detail, text: "x"), pipe)
      link.send(Message.new(:ready), [pipe.last, pipe.first, link.to_io, link.to_io])
    end
    hear(child) until child.ready?

    assert_equal before + 2, Dir.children("/proc/self/fd").size # its link and its pidfd
  ensure
    GC.enable
  end

  def test_orders_are_not_for_children_to_give
    %i[spawn promote leave drain].each do |kind|
      child = adopted { |link| link.send(Message.new(kind)) }
      hear(child) until child.condemned?

      assert_match(/an order instead of a report/, child.verdict)
    end
  end

  def test_nobody_is_ready_twice
    child = adopted { |link| 2.times { link.send(Message.new(:ready)) } }
    hear(child) until child.condemned?

    assert_equal 1, told(:child_ready).size
    assert_match(/ready twice/, child.verdict)
  end

  def test_a_process_that_was_killed_may_say_that_it_is_ready
    go, gate = IO.pipe
    child = adopted { |link| go.read(1) && link.send(Message.new(:ready)) }
    child.instance_variable_set(:@verdict, "its generation was discarded")
    gate.syswrite("x")
    hear(child)

    assert_empty told(:child_ready)
    assert_equal :adopted, child.state
    assert_empty events("link.malformed")
  end

  def test_a_link_that_ends_before_the_first_report
    child, theirs = order
    theirs.close
    hear(child)

    assert_equal [[:child_lost, child, nil]], @observer.calls
    assert_equal "it ended before it reported", child.reason
  end

  def test_that_of_a_mold_which_a_worker_is_to_fork_leaves_the_worker_time_to_end_as_well
    child, theirs = order(:mold, source: adopted)
    theirs.close
    hear(child)

    assert_empty told(:child_lost)
    assert_equal "it ended before it reported", child.reason
    assert_in_delta Pando::Sys.now + Pando::Cluster::Inbox::SOURCE_END, child.deadline, 2
    refute watched?(child.link)
  end

  # It may say that it could not carry out the order.
  def test_that_of_a_worker_leaves_its_mold_time_to_say_why
    child, theirs = order(source: mold = adopted(:mold) { |link| answer_order(link, :fork_failed, "EMFILE") })
    mold.become_ready
    theirs.close
    hear(child)

    assert_empty told(:child_lost)
    assert child.cut_off
    assert_in_delta Pando::Sys.now + Pando::Cluster::Inbox::MOLD_REPORT, child.deadline, 2
  end

  def test_a_failure_that_passes
    child = adopted { |link| link.send(Message.failure(true, text: "no Redis")) }
    hear(child) until child.failure

    assert child.passing
  end

  def test_a_link_that_ends_later_leaves_some_time
    child = adopted(&:close)
    hear(child) until child.deadline

    assert_in_delta Pando::Sys.now + Pando::Cluster::Inbox::LINK_ENDED, child.deadline, 2
    refute watched?(child.link)
    assert_empty told(:child_lost)
  end

  def test_last_words_come_before_the_end_of_a_link
    child = adopted do |link|
      link.send(Message.new(:failed, text: "last words"))
      exit!(1)
    end
    child.link.send(Message.new(:leave)) # never read: the kernel tells of a reset first
    ended(child)
    @inbox.read(child)

    assert_equal "last words", child.failure
  end

  # Not before the order: it would be an answer to nothing.
  def answer_order(link, kind, text)
    link.to_io.wait_readable(PATIENCE)
    link.send(Message.new(kind, seat: 1, text: text))
  end

  def test_a_fork_that_was_refused
    mold = adopted(:mold) { |link| answer_order(link, :fork_failed, "EAGAIN") }
    unborn, theirs = order(source: mold)
    assert_equal 1, unborn.seat
    mold.order(Message.new(:spawn))
    hear(mold) while told(:fork_failed).empty?
    theirs.close

    assert_equal [[:fork_failed, unborn, "EAGAIN", { innocent: true }]], told(:fork_failed)
    assert_equal 1, order(source: mold).first.seat
  end

  def test_a_fork_that_a_hook_refused
    mold = adopted(:mold) { |link| answer_order(link, :fork_refused, "hook") }
    unborn, theirs = order(source: mold)
    mold.order(Message.new(:spawn))
    hear(mold) while told(:fork_failed).empty?
    theirs.close

    assert_equal [[:fork_failed, unborn, "hook", { innocent: false }]], told(:fork_failed)
  end

  # Both orders failed by the same hook. With the first one the generation was given up, and the second called off.
  def test_a_fork_that_was_called_off_meanwhile
    mold = adopted(:mold) { |link| answer_order(link, :fork_refused, "hook") }
    mold.leave("discarded", Pando::Sys.now + 60)
    mold.order(Message.new(:spawn))
    hear(mold)

    refute_predicate mold, :condemned?
    assert_empty told(:fork_failed)
  end

  # The new child's link had ended, and the monitor had waited for the mold's reason as long as it does. It has then
  # given the next order.
  def test_a_reason_that_comes_when_the_order_was_given_up
    mold = adopted(:mold) { |link| answer_order(link, :fork_failed, "EMFILE") }
    unborn, theirs = order(source: mold)
    assert_equal 1, unborn.seat
    @roster.dismiss(unborn)
    retried, its_end = order(source: mold)
    mold.order(Message.new(:spawn))
    hear(mold)
    [theirs, its_end].each(&:close)

    refute_predicate mold, :condemned?
    assert_empty told(:fork_failed)
    assert_equal [2, 1], [retried, order(source: mold).first].map(&:seat)
  end

  def test_only_the_forker_can_say_that_a_fork_failed
    other = adopted
    [[:fork_failed, 1], [:fork_failed, 60], [:fork_refused, 4_000_000_000]].each do |kind, seat|
      liar = adopted { |link| link.send(Message.new(kind, seat: seat)) }
      order(source: other)
      hear(liar) until liar.condemned?

      assert_match(/a failed fork that was not ordered/, liar.verdict)
    end
    assert_empty told(:fork_failed)
  end

  def test_a_child_that_never_stops_talking_does_not_hold_the_monitor
    child = adopted { |link| loop { link.send(Message.new(:replacement_wanted, text: "x")) } }
    5.times { hear(child) }

    assert_operator told(:child_wants_replacement).size, :<=, 6 * Pando::Cluster::Inbox::BURST
    refute_predicate child, :condemned?
  end

  def test_who_is_gone_is_not_read
    child = adopted
    @roster.dismiss(child)

    assert_nil @inbox.read(child)
  end

  def test_the_steps_of_a_self_check_are_passed_on
    child = adopted do |link|
      link.send(Message.new(:checking, text: "loader"))
      link.send(Message.new(:checking))
    end
    hear(child) while told(:child_checking).size < 2

    assert_equal [[:child_checking, child, "loader"], [:child_checking, child, ""]], told(:child_checking)
  end
end
