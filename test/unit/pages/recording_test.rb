# frozen_string_literal: true

require "test_helper"
require "fcntl"
require "stringio"
require "tempfile"
require "support/in_child"
require "pando/pages/report"

# A recording on its way from the worker, which may be anybody by now.
class PagesRecordingTest < Minitest::Test
  Recording = Pando::Pages::Recording
  PrivatePages = Pando::Pages::PrivatePages

  MAPS = <<~MAPS
    1000-9000 rw-p 00000000 00:00 0  [heap]
    10000-20000 rw-p 00000000 00:00 0
    30000-31000 r-xp 00000000 00:00 0
  MAPS

  def test_it_comes_as_it_was_sent
    read = Recording.read(StringIO.new(written))

    assert_equal recording.parts, read.parts
    assert_equal %i[before job major_gc], read.steps.map(&:cause)
    assert_equal "2", read.facts["slot"]
  end

  def test_whatever_is_cut_off_is_broken
    whole = written
    whole.bytesize.times do |size|
      assert_raises(Recording::Broken) { Recording.read(StringIO.new(whole.byteslice(0, size))) }
    end
  end

  def test_a_part_that_says_it_is_huge_is_not_read
    assert_raises(Recording::Broken) { Recording.read(StringIO.new("#{Recording::MAGIC}#{[1 << 62].pack("Q<")}x")) }
  end

  def test_more_jobs_than_a_command_may_ask_for_are_broken
    most = Pando::Pages::Recorder::JOBS.end
    jobs = ->(number) { Recording.new(recording.parts.merge("jobs" => "job\n" * number)).jobs }

    assert_equal most, jobs.call(most).size
    assert_raises(Recording::Broken) { jobs.call(most + 1) }
    assert_raises(Recording::Broken) { jobs.call(most + 2) }
  end

  def test_pages_and_steps_that_cannot_be_are_broken
    [{ "pages" => [page(1, 7)].pack("Q*") }, { "steps" => [0, 99, 0, 0, 0, 0].pack("L*") }, { "facts" => "\xFF" },
     { "steps" => [0, 0].pack("L*") }, { "jobs" => "?\n" }].each do |wrong|
      broken = Recording.new(recording.parts.merge(wrong))

      assert_raises(Recording::Broken, wrong.inspect) { Pando::Pages::Report.write(PrivatePages.new(broken), "text") }
    end
  end

  def test_pages_of_a_job_that_cannot_be_are_broken
    steps = ->(job) { { "steps" => [job, 1, 0, 0, 0, 0].pack("L*"), "pages" => [page(1, 0)].pack("Q*") } }
    after_the_last_one = PrivatePages.new(Recording.new(recording.parts.merge(steps.call(2))))

    assert_equal 2, Pando::Pages::Figures.new(after_the_last_one).requests.size
    [3, 0xFFFFFFFF].each do |job|
      assert_raises(Recording::Broken) { PrivatePages.new(Recording.new(recording.parts.merge(steps.call(job)))) }
    end
  end

  def test_pages_are_counted_by_kind_and_cause
    pages = PrivatePages.new(recording)

    assert_equal({ malloc: 2, ruby_heap: 1, code: 1, file: 1 }, pages.private)
    assert_equal({ before: 2, compiling: 1, major_gc: 1, compile: 1 }, pages.causes)
    assert_equal 1, pages.by_kind_and_cause[%i[ruby_heap major_gc]]
  end

  def test_the_pages_that_the_mold_has_were_shared
    mold = Struct.new(:pages) { def page?(number) = pages.include?(number) }.new([1])

    assert_equal({ malloc: 1 }, PrivatePages.new(recording, mold: mold).copied)
  end

  def test_reports_escape_what_a_worker_says
    %w[text json html].each do |format|
      report = Pando::Pages::Report.write(PrivatePages.new(recording), format)

      refute_includes report, "<script>" if format == "html"
      refute_includes report, "\e"
      assert_includes report, "evil"
    end
  end

  def test_the_text_is_tables_of_mebibytes
    facts = recording.parts.merge("facts" => "facts pid=1 slot=2 generation=0 served=1 seconds=0.5 ruby=x\n")
    mold = Struct.new(:pages) { def page?(number) = pages.include?(number) }.new([1])
    text = Pando::Pages::Report.write(PrivatePages.new(Recording.new(facts), mold: mold), "text")

    assert_equal(<<~TEXT, text)
      Worker 2 of generation 0, pid 1, 1 request after its fork
      x
      Watched: 1 request in 0.5 s, with 0 minor and 0 major collections; looking took 0.00 s.

      MiB            private  copied   new  before  compiling request  compile  major GC
      Ruby heap         0.00       .  0.00       .                  .        .      0.00
      malloc            0.01    0.00  0.00    0.00               0.00        .         .
      compiled code     0.00       .  0.00       .                  .     0.00         .
      files             0.00       .  0.00    0.00                  .        .         .
      all               0.02    0.00  0.02    0.01               0.00     0.00      0.00

      request  private  before  compiling request  compile  major GC
      before      0.01    0.01                  .        .         .
      1           0.01       .               0.00     0.00      0.00

      most by  private  Ruby heap  malloc  compiled code
      1           0.01       0.00    0.00           0.00  GET /<script>?[31mevil

      copied: the mold has a page there too, so it was shared until this worker wrote to it.
    TEXT
  end

  private

  def written = StringIO.new.tap { |io| recording.write(io) }.string

  # [before, of a file] [a job that compiles: malloc and code] [a collection: Ruby's heap]
  def recording
    Recording.new(
      "facts" => "facts pid=1 slot=2 generation=0 served=4 ruby=x private=20480\n",
      "jobs" => Pando::Cluster::Control::Line.encode("job", request: "GET /<script>\e[31mevil", compiled: 3),
      "maps" => MAPS, "heap" => [0x10000].pack("Q*"),
      "steps" => [[0, 0, 0, 2, 0, 9], [1, 1, 2, 2, 0, 9], [1, 3, 1, 1, 0, 9]].flatten.pack("L*"),
      "pages" => [page(1, 0), page(2, 1), page(16, 2), page(48, 1), page(99, 0) | (1 << 18)].pack("Q*")
    )
  end

  def page(number, step) = (number << 19) | step
end

# A process that watches its own pages. A child, for what its parent has too is shared.
class PagesRecorderTest < Minitest::Test
  include Support::InChild

  PAGE = 4096
  PAGES = 200
  TEXT = "a" * (PAGE * (PAGES + 1))
  OBJECTS = Array.new(50_000) { |number| "object #{number}" }
  # Keeps what it reports to the monitor.
  Worker = Struct.new(:slot, :generation, :requests) do
    def failures = @failures ||= []
    def report(_kind, text:) = failures << text
  end

  def test_pages_belong_to_what_made_them_private
    pages = record(3) do |recorder|
      1.upto(PAGES) { |page| TEXT.setbyte((page * PAGE) - 1, 66) }
      recorder = recorder.job_finished(%w[GET /write])
      GC.start
      recorder = recorder.job_finished(%w[GET /gc])
      recorder.job_finished(%w[GET /nothing])
    end
    requests = Pando::Pages::Figures.new(pages).requests

    assert_equal ["GET /write", "GET /gc", "GET /nothing"], requests.map(&:name)
    # On a slow machine looking takes so long that they are not told apart any more. A few may have been private before.
    assert_operator requests[0].causes.values_at(:request, :compiling, :mixed).sum, :>=, PAGES * 0.9
    # Where the text lies is the kernel's affair: right behind a library it is taken for its variables.
    assert_operator requests[0].kinds.values_at(:anonymous, :malloc, :data).compact.sum, :>=, PAGES * 0.9
    assert_operator requests[1].causes.values_at(:major_gc, :mixed).sum, :>, PAGES / 4
    assert_operator requests[2].causes.values.sum, :<, PAGES / 4
  end

  def test_the_kinds_add_up_to_what_the_kernel_says
    pages = record(0)
    kernel = Integer(pages.recording.facts["private"])

    assert_in_delta kernel, pages.total * PAGE, (kernel / 20) + (1 << 20)
    assert_operator pages.private[:ruby_heap], :>, 0
  end

  def test_when_its_time_is_over_it_hands_over_what_it_has
    pages = record(5, seconds: 0) { |recorder| recorder.job_finished(%w[GET /]).tick }

    assert_equal "its time was over", pages.recording.facts["cut_short"]
    assert_equal 1, pages.recording.jobs.size
  end

  # Each thread of a worker reports its own jobs, and goes on to do so while another one hands over the recording.
  def test_jobs_of_several_threads_make_one_recording
    pages = record(20) do |recorder|
      after = Array.new(5) { Thread.new { Array.new(20) { recorder.job_finished(%w[GET /]) } } }.flat_map(&:value)
      raise @worker.failures.first if @worker.failures.any?

      after.last
    end

    assert_equal 20, pages.recording.jobs.size
    assert_nil pages.recording.facts["cut_short"]
  end

  def test_a_recording_that_is_over_takes_nothing_more
    failures, *after = in_child do
      recorder = started(File.open(File::NULL, "w"), File.open(File::NULL, "w"), 1)
      after = Array.new(2) { recorder.job_finished(%w[GET /]) }.push(recorder.tick, recorder.finish("it leaves"))
      [@worker.failures, *after]
    end

    assert_equal [[], [nil] * 4], [failures, after]
  end

  def test_an_order_that_is_none_opens_nothing
    ["", "pages jobs=-1 seconds=1", "pages jobs=1", "pages jobs=5000 seconds=5", "\xFF"].each do |wish|
      reader, writer = IO.pipe
      fds = [writer.fcntl(Fcntl::F_DUPFD, 0), writer.fcntl(Fcntl::F_DUPFD, 0)]
      writer.close

      assert_nil Pando::Pages::Recorder.start(worker = Worker.new(0, 0, 0), wish, fds)
      assert_equal ["the order is malformed"], worker.failures
      assert_equal "", reader.read # both are closed
      reader.close
    end
  end

  # A client of the control socket may send anything.
  def test_a_descriptor_that_is_not_for_writing_is_closed_and_no_harm
    reader, writer = IO.pipe
    fds = [writer.fcntl(Fcntl::F_DUPFD, 0), reader.fcntl(Fcntl::F_DUPFD, 0)]
    writer.close

    assert_nil Pando::Pages::Recorder.start(worker = Worker.new(0, 0, 0), "pages jobs=1 seconds=5", fds)
    assert_equal [Errno::EINVAL.new.message], worker.failures
    assert_equal "", reader.read
    assert_raises(Errno::EBADF) { IO.for_fd(fds.last) }
  ensure
    reader.close
  end

  # Both at once and after a job: the worker goes on, and the command is told that it is over.
  def test_a_full_disk_ends_the_recording_and_nothing_else
    [0, 1].each do |jobs|
      reader, writer = IO.pipe
      ended, failures = in_child do
        recorder = started(File.open("/dev/full", "w"), writer, jobs)
        recorder = recorder.job_finished(%w[GET /]) if recorder
        [recorder.nil?, @worker.failures]
      end
      writer.close

      assert_equal [true, [Errno::ENOSPC.new.message]], [ended, failures]
      assert_equal Pando::Pages::Recorder::OVER, reader.read.delete(Pando::Pages::Recorder::STEP)
      reader.close
    end
  end

  def test_who_no_longer_listens_is_left_alone
    outcome = in_child do
      reader, writer = IO.pipe
      reader.close
      recorder = started(File.open(File::NULL, "w"), writer, 5)
      [recorder.nil?, recorder.job_finished(%w[GET /]).nil?, Pando::Sys.watched_pages.first.empty?, @worker.failures]
    end

    assert_equal [false, true, true, [Errno::EPIPE.new.message]], outcome
  end

  private

  # @return [PrivatePages] of a child that does so, whose parent lives
  def record(jobs, seconds: 60)
    Tempfile.create("pages") do |file|
      reader, writer = IO.pipe
      in_child do
        recorder = started(file, writer, jobs, seconds)
        recorder = yield recorder if recorder && block_given?
        recorder.nil?
      end
      writer.close
      # The waiting process is told of the end, also if somebody else has the pipe.
      assert_equal Pando::Pages::Recorder::OVER, reader.read.delete(Pando::Pages::Recorder::STEP)
      Pando::Pages::PrivatePages.new(Pando::Pages::Recording.read(file.tap(&:rewind)))
    ensure
      reader&.close
    end
  end

  def started(file, bell, jobs, seconds = 60)
    descriptors = [file, bell].map { |io| io.fcntl(Fcntl::F_DUPFD, 0) }
    Pando::Pages::Recorder.start(@worker = Worker.new(1, 2, 3), "pages jobs=#{jobs} seconds=#{seconds}", descriptors)
  end
end
