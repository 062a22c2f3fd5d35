# frozen_string_literal: true

require "test_helper"
require "fcntl"
require "tempfile"
require "support/in_child"
require "pando/pages/private_pages"
require "pando/pages/recorder"
require "pando/pages/figures"

# A process that watches its own pages. A child, for what its parent has too is shared.
class PagesRecorderTest < Minitest::Test
  include Support::InChild

  PAGE = 4096
  PAGES = 200
  TEXT = "a" * (PAGE * (PAGES + 1))
  OBJECTS = Array.new(50_000) { |number| "object #{number}" }
  Worker = Struct.new(:slot, :generation, :requests)

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

  def test_an_order_that_is_none_opens_nothing
    ["", "pages jobs=-1 seconds=1", "pages jobs=1", "pages jobs=5000 seconds=5", "\xFF"].each do |wish|
      reader, writer = IO.pipe
      fds = [writer.fcntl(Fcntl::F_DUPFD, 0), writer.fcntl(Fcntl::F_DUPFD, 0)]
      writer.close

      assert_nil Pando::Pages::Recorder.start(Worker.new(0, 0, 0), wish, fds)
      assert_equal "", reader.read # both are closed
      reader.close
    end
  end

  # A client of the control socket may send anything.
  def test_a_descriptor_that_is_not_for_writing_is_closed_and_no_harm
    reader, writer = IO.pipe
    fds = [writer.fcntl(Fcntl::F_DUPFD, 0), reader.fcntl(Fcntl::F_DUPFD, 0)]
    writer.close

    assert_nil Pando::Pages::Recorder.start(Worker.new(0, 0, 0), "pages jobs=1 seconds=5", fds)
    assert_equal "", reader.read
    assert_raises(Errno::EBADF) { IO.for_fd(fds.last) }
  ensure
    reader.close
  end

  def test_who_no_longer_listens_is_left_alone
    outcome = in_child do
      reader, writer = IO.pipe
      reader.close
      recorder = started(File.open(File::NULL, "w"), writer, 5)
      [recorder.nil?, recorder.job_finished(%w[GET /]).nil?, Pando::Sys.watched_pages.first.empty?]
    end

    assert_equal [false, true, true], outcome
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
      assert_equal "", reader.read.delete(".") # the waiting process is told of the end
      Pando::Pages::PrivatePages.new(Pando::Pages::Recording.read(file.tap(&:rewind)))
    ensure
      reader&.close
    end
  end

  def started(file, bell, jobs, seconds = 60)
    descriptors = [file, bell].map { |io| io.fcntl(Fcntl::F_DUPFD, 0) }
    Pando::Pages::Recorder.start(Worker.new(1, 2, 3), "pages jobs=#{jobs} seconds=#{seconds}", descriptors)
  end
end
