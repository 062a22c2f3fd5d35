# frozen_string_literal: true

require "test_helper"
require "etc"
require "tempfile"
require "pando/sys"
require_relative "support/in_child"

class SysScoreboardTest < Minitest::Test
  include SysSupport::InChild

  Sys = Pando::Sys
  Scoreboard = Pando::Sys::Scoreboard

  def setup
    @board = Scoreboard.create(4)
    @row = @board.row(2)
  end

  def io_of(board) = File.for_fd(board.fileno, "r+", autoclose: false)

  def test_a_new_row_is_blank
    numbers = %i[state role slot generation pid requests job].map { |name| @row.public_send(name) }
    times = %i[heartbeat started_at busy_since soft_deadline hard_deadline job_name].map do |name|
      @row.public_send(name)
    end

    assert_equal [0] * 7, numbers
    assert_equal [nil] * 6, times
    refute_predicate @row, :fork_unsafe?
  end

  # A worker, whose row was its forker's to write until then.
  def test_a_process_other_than_the_monitor_writes_its_own_row_alone
    @board.guard
    assert_equal(%w[no no yes no], in_child { @board.take(2) && writable })
    @board.take(1)

    assert_equal %w[no yes no no], writable
    assert_equal(%w[no no no yes], in_child { @board.take(3) && writable })
    assert_nil @board.take(1).beat
    assert_raises(IndexError) { @board.take(4) }
  end

  # By the kernel's word for the pages of each row.
  def writable
    page = Etc.sysconf(Etc::SC_PAGESIZE)
    inode = io_of(@board).stat.ino
    pages = File.foreach("/proc/self/maps").grep(/ #{inode} /).flat_map do |mapping|
      first, behind = mapping[/\A\S+/].split("-").map(&:hex)
      [mapping.include?(" rw-s ") ? "yes" : "no"] * ((behind - first) / page)
    end
    pages.each_slice(stride / page).map { |row| row.uniq.join("/") }.drop(1)
  end

  # Bytes from one row to the next.
  def stride = io_of(@board).stat.size / (@board.seats + 1)

  def test_who_claims_a_row
    before = Sys.now

    assert_same @row, @row.claim(1, 3, 7)
    assert_equal [1, 3, 7, Process.pid], [@row.role, @row.slot, @row.generation, @row.pid]
    assert_includes before..Sys.now, @row.started_at
    assert_includes before..Sys.now, @row.heartbeat
  end

  def test_a_beat
    before = Sys.now
    @row.beat

    assert_includes before..Sys.now, @row.heartbeat
  end

  # A worker that was busy for long is not taken for stuck when it is idle again.
  def test_the_end_of_a_job_is_a_sign_of_life
    @row.start_job("GET", "/", nil, nil)
    assert_nil @row.heartbeat
    before = Sys.now
    @row.finish_job

    assert_includes before..Sys.now, @row.heartbeat
  end

  def test_what_the_monitor_tells_of_a_process
    @row.claim(1, 3, 7)
    assert_same @row, @row.tell(2, 4, 5)
    @row.fork_unsafe!

    assert_equal [2, 4, 5], [@row.state, @row.pool, @row.threads]
    assert_predicate @row, :fork_unsafe?
    @row.restart
    assert_equal [2, 4, 5], [@row.state, @row.pool, @row.threads]
  end

  def test_what_the_monitor_tells_of_all
    before = Sys.now
    board = Scoreboard.create(4)
    assert_includes before..Sys.now, board.started_at
    assert_equal [0, 0, 0], [board.used, board.waiting(0), board.waiting(15)]
    assert_equal 2, board.use(2).tell(2, 0, 1).state
    board.use(0)
    board.tell_waiting(15, 7)

    assert_equal [3, 7, 2], [board.used, board.waiting(15), board.row(2).state]
    assert_raises(IndexError) { board.use(4) }
    board.tell_waiting(16, 7)
    assert_equal 0, board.waiting(16), "there is no such pool"
    other = Scoreboard.attach(Sys.disown(io_of(board).dup))
    assert_equal [3, 7], [other.used, other.waiting(15)]
  end

  def test_what_stood_against_forking_may_be_gone
    @row.fork_unsafe!
    @row.major_gc_due = true
    @row.fork_safe!

    assert_equal [false, true], [@row.fork_unsafe?, @row.major_gc_due?]
  end

  def test_connections
    assert_equal 0, @row.connections
    @row.connections = 3

    assert_equal 3, @row.connections
    @row.take_sample(1, 1, 1, 1)
    assert_equal 3, @row.connections, "a sample lies beside it"
  end

  # Not for ever, and it says nothing about the other one.
  def test_an_answer_streams_until_its_job_ends
    @row.fork_unsafe!
    @row.start_job("GET", "/", nil, nil)
    refute_predicate @row, :streaming?
    @row.streaming!
    assert_predicate @row, :streaming?

    @row.finish_job
    assert_equal [false, true], [@row.streaming?, @row.fork_unsafe?]
  end

  def test_a_worn_one
    refute_predicate @row, :major_gc_due?
    @row.major_gc_due = true

    assert_equal [true, false], [@row.major_gc_due?, @row.fork_unsafe?]
    @row.fork_unsafe!
    @row.major_gc_due = false

    assert_equal [false, true], [@row.major_gc_due?, @row.fork_unsafe?]
  end

  def test_a_job_from_its_start_to_its_end
    before = Sys.now
    @row.start_job("GET", "/path", 10, 20.5)

    assert_equal %w[GET /path], @row.job_name
    assert_includes before..Sys.now, @row.busy_since
    assert_in_delta before + 10, @row.soft_deadline, 5
    assert_in_delta @row.soft_deadline + 10.5, @row.hard_deadline, 5
    assert_equal 0, @row.requests
    @row.finish_job
    assert_equal [nil, nil, nil], [@row.busy_since, @row.soft_deadline, @row.hard_deadline]
    assert_equal 1, @row.requests
  end

  def test_each_job_has_a_number
    numbers = Array.new(3) do
      @row.start_job("GET", "/", nil, nil)
      @row.job
    end

    assert_equal numbers.uniq, numbers
    assert numbers.all?(&:even?)
  end

  def test_deadlines_none_past_and_far
    @row.start_job("GET", "/", nil, nil)
    assert_equal [nil, nil], [@row.soft_deadline, @row.hard_deadline]
    @row.set_deadlines(-5, 0)
    assert_operator @row.soft_deadline, :<=, Sys.now
    assert_operator @row.hard_deadline, :<=, Sys.now
    @row.set_deadlines(Float::INFINITY, 1e300)
    assert_operator @row.soft_deadline, :>, Sys.now + 1e8
    assert_operator @row.hard_deadline, :>, Sys.now + 1e8
    @row.set_deadlines(1r, nil)
    assert_in_delta Sys.now + 1, @row.soft_deadline, 5
    assert_nil @row.hard_deadline
  end

  def test_long_names_are_cut_and_short_ones_end_where_they_end
    @row.start_job("V" * 17, "/#{"s" * 200}", nil, nil)
    assert_equal ["V" * 16, "/#{"s" * 111}"], @row.job_name
    @row.start_job("V" * 16, "s" * 112, nil, nil)
    assert_equal ["V" * 16, "s" * 112], @row.job_name
    @row.start_job("", "/a", nil, nil)
    assert_equal ["", "/a"], @row.job_name
  end

  def test_what_is_no_job
    assert_raises(TypeError) { @row.start_job(nil, "/", nil, nil) }
    assert_raises(TypeError) { @row.start_job("GET", 1, nil, nil) }
    assert_raises(TypeError) { @row.start_job("GET", "/", "soon", nil) }
    assert_equal 0, @row.job
  end

  def test_a_reset_row_is_blank_and_its_neighbours_are_not
    [1, 2, 3].each { |seat| @board.row(seat).claim(1, seat, 9).start_job("GET", "/#{seat}", 1, 1) }
    @row.fork_unsafe!
    @row.reset

    assert_equal [0, 0, nil, nil, false], [@row.pid, @row.slot, @row.busy_since, @row.job_name, @row.fork_unsafe?]
    assert_equal([[1, %w[GET /1]], [3, %w[GET /3]]], [1, 3].map do |seat|
      @board.row(seat).then do |r|
        [r.slot, r.job_name]
      end
    end)
  end

  def test_seats
    assert_equal 4, @board.seats
    [4, 2**40, -1].each { |seat| assert_raises(IndexError) { @board.row(seat) } }
    [0, -1, 65_537].each { |seats| assert_raises(ArgumentError) { Scoreboard.create(seats) } }
    assert_equal 65_536, Scoreboard.create(65_536).seats
  end

  def test_a_row_keeps_its_mapping_alive
    rows = Array.new(50) { Scoreboard.create(1).row(0) }
    GC.start
    GC.compact if GC.respond_to?(:compact)
    rows.each_with_index { |row, index| row.claim(0, index, 0) }

    assert_equal [*0...50], rows.map(&:slot)
  end

  def test_a_board_that_is_forgotten_closes_its_descriptor
    before, after = in_child do
      before = open_descriptors
      50.times { Scoreboard.create(1) }
      wait_until do
        GC.start
        Array.new(100) { Object.new }
        open_descriptors < before + 10
      end
      [before, open_descriptors]
    end

    assert_operator after, :<, before + 10
  end

  def test_the_mapping_outlives_its_descriptor
    io = io_of(@board)
    @board.close_fd
    @board.close_fd
    @row.claim(0, 3, 0)

    assert_raises(Errno::EBADF) { io.stat }
    assert_equal 3, @board.row(2).slot
  end

  def test_a_child_writes_and_the_parent_reads
    in_child { @row.claim(2, 9, 4).start_job("PUT", "/from/the/child", nil, nil) && nil }

    assert_equal [2, 9, 4, %w[PUT /from/the/child]], [@row.role, @row.slot, @row.generation, @row.job_name]
    refute_equal Process.pid, @row.pid
  end

  def test_another_image_attaches_by_descriptor
    script = <<~RUBY
      board = Pando::Sys::Scoreboard.attach(3)
      board.close_fd
      board.row(2).claim(1, board.seats, 6)
    RUBY
    folders = $LOAD_PATH.grep(/pando|lib/).flat_map { |folder| ["-I", folder] }
    command = [RbConfig.ruby, "--disable-gems", *folders, "-r", "pando/sys", "-e", script]
    _, status = Process.wait2(Sys.spawn(command, [], [@board]))

    assert_predicate status, :success?
    assert_equal [1, 4, 6], [@row.role, @row.slot, @row.generation]
  end

  def test_nobody_can_change_its_size
    io = io_of(@board)

    assert_raises(Errno::EPERM) { io.truncate(0) }
    assert_raises(Errno::EPERM) { io.truncate(1 << 20) }
    @row.beat
  end

  def test_what_is_no_scoreboard_is_refused_and_stays_its_owners
    Tempfile.create("pando") do |copy|
      copy.write(io_of(@board).pread(io_of(@board).size, 0)) # all right, but its owner could shrink it
      copy.flush
      IO.pipe do |reader, _|
        [copy, reader, $stdin].each { |io| assert_raises(Errno::EINVAL) { Scoreboard.attach(io.fileno) } }
      end
      GC.start
      assert_equal io_of(@board).size, copy.stat.size
    end
    assert_raises(Errno::EBADF) { Scoreboard.attach(9999) }
  end

  def test_a_memfd_with_another_content_is_refused_and_stays_its_owners
    io = io_of(@board)
    still_open = in_child do
      [["\0" * 8, 0], [[5].pack("Q"), 8]].map do |bytes, offset| # the magic number, the number of seats
        before = io.pread(8, offset)
        io.pwrite(bytes, offset)
        error = error_of { Scoreboard.attach(io.fileno) }
        io.pwrite(before, offset)
        GC.start
        [error, io.stat.size.positive?]
      end
    end

    assert_equal [["Errno::EINVAL", true]] * 2, still_open
  end

  # Every name is one letter over and over, so that a mixture of two would show.
  def test_a_reader_never_sees_half_a_name
    writer = fork do
      letters = ("a".."z").map { |letter| [letter * 16, letter * 112] }
      loop { letters.each { |verb, subject| @row.start_job(verb, subject, nil, nil) } }
    end
    names = []
    wait_until do
      1000.times { names << @row.job_name }
      names.compact.uniq.size > 1 && names.compact.size > 10_000
    end
    names.compact!

    assert_empty(names.reject { |verb, subject| subject == verb[0] * 112 && verb == verb[0] * 16 })
  ensure
    Process.kill(:KILL, writer)
    Process.wait(writer)
  end

  def test_while_a_name_is_written_there_is_none
    # What a writer leaves that is killed in the middle: an odd number.
    @row.start_job("GET", "/", nil, nil)
    jobs = 128 + 256 + 256 + 64 + 64 + 128 # bytes before them: 2 lines, and what is measured
    io_of(@board).pwrite([3].pack("Q"), (3 * stride) + jobs)

    assert_equal 3, @row.job
    assert_nil @row.job_name
    @row.start_job("GET", "/next", nil, nil)
    assert_equal %w[GET /next], @row.job_name
  end

  # A process with threads.
  def test_jobs_side_by_side
    @row.start_job("GET", "/one", 5, 6, 1)
    @row.start_job("POST", "/two", nil, nil, 64)

    assert_equal [1, 64], @row.jobs
    assert_equal([%w[GET /one], %w[POST /two], nil], [1, 64, 0].map { |number| @row.job_name(number) })
    assert_operator @row.busy_since(1), :<=, @row.busy_since(64)
    assert_equal @row.busy_since(1), @row.busy_since
    @row.streaming!(64)
    @row.retried!(1)
    assert_equal([false, true], [1, 64].map { |number| @row.streaming?(number) })
    assert_equal([true, false], [1, 64].map { |number| @row.retried?(number) })
    @row.finish_job(1)
    assert_equal [[64], 1, @row.busy_since(64)], [@row.jobs, @row.requests, @row.busy_since]
    @row.finish_job(64)
    assert_equal [[], 2, nil, false], [@row.jobs, @row.requests, @row.busy_since, @row.streaming?(64)]
    assert_raises(IndexError) { @row.start_job("GET", "/", nil, nil, Pando::Sys::Row::JOBS) }
  end
end
