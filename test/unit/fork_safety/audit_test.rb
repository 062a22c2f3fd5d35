# frozen_string_literal: true

require "test_helper"
require "fiddle"
require "socket"
require "tempfile"
require "pando/fork_safety"
require "support/in_child"

# What is found in a process, in one that was forked, and what is not.
class ForkSafetyAuditTest < Minitest::Test
  include Support::InChild

  Audit = Pando::ForkSafety::Audit

  # IO objects that other tests have left, and whose descriptors were closed beneath them, must not be taken for owners.
  def setup
    GC.start
    @opened = []
    Audit.begin
  end

  def teardown
    @opened.each { |io| io.close unless io.closed? }
  end

  def test_a_connection_of_two_processes_is_an_error_that_names_the_peer_and_the_processes
    client, = connection
    found = of_child(:shared_socket)

    assert_equal([["error", "tcp connection to 127.0.0.1:#{client.remote_address.ip_port}"]],
                 found.map { |one| one.values_at(:severity, :subject) })
    details = found.first[:details]
    assert_equal([[Process.pid], "Socket", "ruby"], details.values_at(:shared_with, :io, :owner))
  end

  def test_one_that_no_ruby_object_has_is_found_too
    client, = connection
    copy = native("dup", client.fileno)
    client.close
    found = of_child(:shared_socket)

    assert_equal(["native"], found.map { |one| one[:details][:owner] })
  ensure
    Pando::Sys.close_fd(copy) if copy
  end

  def test_a_connection_that_the_parent_has_closed_or_the_child_replaced_is_none
    client, = connection
    Audit.census
    answer = in_child do
      shared = kinds
      Audit.close(Audit.run(forks: false).descriptors.select { |one| one.number == client.fileno })
      [shared, kinds]
    end

    assert_equal([%w[shared_socket], []], answer)
  end

  def test_before_the_fork_a_connection_is_worth_a_note_only
    connection
    findings = Audit.run.findings.select { |one| one.kind == :open_connection }

    assert_equal([:note], findings.map(&:severity))
    assert_empty(Audit.run(forks: false).findings)
  end

  def test_what_is_kept_is_left_alone_by_object_or_by_address
    client, = connection
    port = client.remote_address.ip_port
    Audit.census
    answer = in_child do
      by_address = Audit.run(forks: false, keep: ["127.0.0.1:#{port}"]).findings.size
      by_star = Audit.run(forks: false, keep: ["*:#{port}"]).findings.size
      other = Audit.run(forks: false, keep: ["127.0.0.2:*"]).findings.size
      own = Audit.run(forks: false, own: [client]).findings.size
      Pando.keep_io(client)
      [by_address, by_star, other, own, Audit.run(forks: false).findings.size]
    end

    assert_equal([0, 0, 1, 0, 0], answer)
  end

  def test_an_address_of_six_has_brackets
    server = TCPServer.new("::1", 0)
    client, = keep(TCPSocket.new("::1", server.addr[1]), server)

    assert_includes(Audit.kept_numbers(["[::1]:#{server.addr[1]}"]), client.fileno)
    assert_includes(Audit.kept_numbers(["[::1]:*"]), client.fileno)
    refute_includes(Audit.kept_numbers(["[::2]:*"]), client.fileno)
  end

  def test_the_numbers_of_what_is_kept
    client, other = connection
    Pando.keep_io(other)
    numbers = Audit.kept_numbers(["*:#{client.remote_address.ip_port}"])

    assert_includes(numbers, client.fileno)
    refute_includes(Audit.kept_numbers([]), client.fileno)
    assert_includes(Audit.kept_numbers([]), other.fileno)
  end

  def test_what_was_open_before_the_application_is_no_fault_of_its
    keep(*UNIXSocket.pair)
    Audit.begin

    assert_empty(of_child)
  end

  def test_harmless_ones
    keep(TCPServer.new("127.0.0.1", 0), UDPSocket.new.tap { |socket| socket.connect("127.0.0.1", 9) })
    keep(File.open(File::NULL), File.open("/dev/urandom"), File.open(__FILE__), $stderr.dup)
    folder = Dir.open("/")
    log = keep(File.open(temporary, "a")).first
    log.syswrite("a line")
    hung_up, gone = UNIXSocket.pair
    keep(hung_up)
    gone.close
    keep(File.open(__FILE__)).first.pread(5, 5)

    assert_empty(of_child)
    assert_empty(of_descriptors)
  ensure
    folder&.close
  end

  def test_a_socket_pair_with_both_ends_here_is_worth_a_note
    one, = keep(*UNIXSocket.pair)
    skip "this kernel has no sock_diag for unix sockets" if Pando::Sys.unix_peers([one.stat.ino]).nil?

    assert_equal(%w[note note], of_child.map { |finding| finding[:severity] })
  end

  def test_pipes_shared_positions_and_sources_of_events
    reader, = keep(*IO.pipe).tap { |_, writer| writer.close }
    keep(File.open(__FILE__)).first.sysread(5)
    timer = native("timerfd_create", 1, 0)
    poller = Pando::Sys::Poller.new
    found = of_child

    assert_equal(%w[shared_event_source shared_event_source shared_pipe shared_position],
                 found.map { |one| one[:kind] }.sort)
    assert_equal(["epoll", "file #{File.realpath(__FILE__)}", "pipe", "timerfd"],
                 found.map { |one| one[:subject] }.sort)
    assert_equal(%w[warning], found.map { |one| one[:severity] }.uniq)
    assert_equal(4, of_descriptors.size, "a process that is going to be forked is told as well")
    reader.close
  ensure
    poller&.close
    Pando::Sys.close_fd(timer) if timer
  end

  def test_event_sources_made_after_the_fork_are_not_inherited
    poller = Pando::Sys::Poller.new
    Audit.census
    answer = in_child do
      poller.close
      poller = Pando::Sys::Poller.new # of the same number, most likely
      kinds
    end
    skip "kcmp(2) is forbidden here" if Pando::Sys.same_open_file?(Process.pid, 0, 0).nil?

    assert_empty(answer)
  ensure
    poller.close
  end

  def test_closing_says_nothing_to_the_peer_and_keeps_the_number
    client, accepted = connection
    Audit.census
    answer = in_child do
      report = Audit.run(forks: false)
      count = Audit.close(report.findings.map { |one| report.subject_of(one) })
      [count, client.fileno, client.read_nonblock(1, exception: false), Audit.run(forks: false).findings.size]
    end

    assert_equal([1, client.fileno, nil, 0], answer)
    client.write("still there")
    assert_equal("still there", accepted.readpartial(64))
  end

  def test_closing_reaches_what_no_ruby_object_has
    client, accepted = connection
    copy = native("dup", client.fileno)
    timer = native("timerfd_create", 1, 0)
    client.close
    Audit.census
    answer = in_child do
      report = Audit.run(forks: false)
      doomed = report.findings.map { |one| report.subject_of(one) }
      closed = Audit.close(doomed)
      [closed, doomed.map(&:owner).uniq, IO.for_fd(copy, autoclose: false).read,
       File.readlink("/proc/self/fd/#{timer}")]
    end

    assert_equal([2, ["native"], "", "/dev/null"], answer)
    assert_equal(:wait_readable, accepted.read_nonblock(1, exception: false), "the peer hears nothing")
  ensure
    [copy, timer].compact.each { |number| Pando::Sys.close_fd(number) }
  end

  def test_of_several_objects_with_one_number_the_likeliest_is_named
    client, = connection
    stale = Array.new(3) { IO.for_fd(client.fileno, autoclose: false) }
    found = of_child(:shared_socket)

    assert_equal(["Socket"], found.map { |one| one[:details][:io] })
    assert_equal(3, stale.size)
  end

  def test_a_number_that_became_anothers_meanwhile_is_left_alone
    client, = connection
    Audit.census
    answer = in_child do
      report = Audit.run(forks: false)
      Pando::Sys.replace_fd(client.fileno, File.new(__FILE__))
      closed = Audit.close(report.findings.map { |one| report.subject_of(one) })
      [closed, File.readlink("/proc/self/fd/#{client.fileno}")]
    end

    assert_equal([0, File.realpath(__FILE__)], answer)
  end

  # Times are bench/audit's; what it allocates shows that no descriptor is compared with all others.
  def test_the_work_grows_with_the_number_of_descriptors
    a_hundred = allocated_beside(100)

    assert_operator(allocated_beside(400), :<, 6 * a_hundred) # they are 500 then
  end

  def test_descriptors_that_come_and_go_meanwhile_are_no_matter
    over = false
    busy = Thread.new { IO.pipe.each(&:close) until over }
    reports = Array.new(30) { Audit.run }

    assert(reports.none?(&:error), reports.filter_map(&:error).first)
  ensure
    over = true
    busy&.join
  end

  def test_where_proc_cannot_be_read_the_report_says_so
    report = Pando::Sys.stub(:descriptors, -> { raise Errno::EACCES, "/proc/self/fd" }) { Audit.run }

    assert_match(/Permission denied/, report.error)
    assert_empty(report.descriptors)
  end

  def test_relatives_that_hide_or_die_are_taken_for_sharers_or_not
    connection
    Audit.census
    answer = in_child do
      hidden = Pando::Sys.stub(:descriptor_of, nil) { kinds }
      gone = Pando::Sys.stub(:descriptor_of, false) { kinds }
      [hidden, gone]
    end

    assert_equal([%w[shared_socket], []], answer)
  end

  def test_a_forker_that_could_not_look_makes_its_child_take_all_for_inherited
    connection
    Pando::Sys.stub(:descriptor_targets, -> { raise Errno::EMFILE }) { Audit.census }

    assert_includes(in_child { kinds }, "shared_socket")
  end

  def test_a_report_is_what_json_knows
    connection
    hash = Audit.run(everything: true).to_h

    assert_equal(%i[findings descriptors threads seconds], hash.keys)
    assert_equal(hash, JSON.parse(JSON.generate(hash), symbolize_names: true).then { |read| symbols(read, hash) })
    assert_includes(hash[:descriptors].map { |one| one[:io] }, "Socket")
  end

  private

  def keep(*ios)
    @opened.concat(ios)
    ios
  end

  # Two ends of one connection, of which the second is kept.
  def connection
    server = TCPServer.new("127.0.0.1", 0)
    client = Socket.tcp("127.0.0.1", server.addr[1])
    accepted = server.accept
    server.close
    Pando.keep_io(accepted)
    keep(client, accepted)
  end

  # @return [Integer] objects that an audit allocates when so many more descriptors are open
  def allocated_beside(more)
    keep(*Array.new(more) { File.new(__FILE__) })
    Audit.run
    before = GC.stat(:total_allocated_objects)
    Audit.run
    GC.stat(:total_allocated_objects) - before
  end

  def native(name, *numbers)
    types = [Fiddle::TYPE_INT] * numbers.size
    Fiddle::Function.new(Fiddle.dlopen(nil)[name], types, Fiddle::TYPE_INT).call(*numbers)
  end

  def temporary = (@temporary ||= Tempfile.new("pando").tap(&:close)).path

  # @return [Array<Hash>] what a child finds of what it inherited
  def of_child(kind = nil)
    Audit.census
    found = in_child { Audit.run(forks: false).findings.map(&:to_h) }
    kind ? found.select { |one| one[:kind] == kind.to_s } : found
  end

  # @return [Array<String>] what this process finds of its own, but for threads
  def of_descriptors = Audit.run.findings.reject { |one| one.kind.end_with?("thread") }.map(&:to_s)

  def kinds = Audit.run(forks: false).findings.map(&:kind)

  # JSON has no symbols for values.
  def symbols(read, like)
    case like
    when Hash then like.to_h { |key, value| [key, symbols(read[key], value)] }
    when Array then read.zip(like).map { |one, other| symbols(one, other) }
    when Symbol then read.to_sym
    else read
    end
  end
end
