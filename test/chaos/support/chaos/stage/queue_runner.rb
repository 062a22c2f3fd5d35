# frozen_string_literal: true

require "fileutils"
require "lies"
require "poison"

# The runner of a chaos run's job nodes. Its queue consists of folders, is durable and delivers each job at least once.
# A job is a file in inbox/. A process that takes a job moves it to its own folder in taken/, records the start, runs
# the job, records its end, and removes the file. If a process has died, the next one that notices gives its jobs back.
# Lives in the server under test.
class QueueRunner
  PAUSE = 0.02 # seconds that a thread without a job waits
  SEARCH = 0.5 # seconds between two searches for dead processes
  AGAIN = 0.1 # seconds before another thread may take a failed job

  class << self
    # Whether the jobs of this process are stuck.
    attr_accessor :stalled
  end

  attr_reader :done, :failed, :lag
  alias progress done

  # @param node [Pando::Swarm::Node] @param folder [String] of the stage
  # @param sick [String, nil] the defect that harms each job, see Poison
  def initialize(node, folder, sick = nil)
    @number = node.number
    @harm = Poison::KINDS.fetch(sick) if sick
    @size = node.concurrency
    @folder = folder
    @queue = File.join(folder, "jobs")
    @lock = Mutex.new
    @news = ConditionVariable.new
    @running = {}
    @done = @failed = 0
  end

  def start
    @mine = File.join(@queue, "taken", "#{Process.pid}-#{born(Process.pid)}")
    FileUtils.mkdir_p(@mine)
    @journal = File.new(File.join(@folder, "jobs.journal"), File::WRONLY | File::APPEND | File::CREAT)
    take_number
    @threads = [Thread.new { every(SEARCH) { give_back_of_the_dead } }]
    @size.times { @threads << Thread.new { every(PAUSE) { nil while perform_next } } }
    @threads.each_with_index { |thread, number| thread.name = "queue #{number}" }
  end

  # From then on no job is taken, because taking one needs the lock.
  def quiet
    @lock.synchronize do
      @quiet_since ||= now
      @news.broadcast
    end
  end

  def busy? = !@running.empty?
  def in_progress = @running.size
  def healthy? = ("a thread has died" unless @quiet_since || @threads.all?(&:alive?))

  # A thread that holds the lock is not killed between two steps that belong together. A thread without a job ends by
  # itself: if Ruby is opening a file when a thread is killed, the file stays open.
  def stop
    quiet
    await(@threads - @running.values)
    @lock.synchronize { @running.each_value(&:kill) }
    await(@threads)
    seconds = now - @quiet_since
    @running.each_key { |job| give_back(job, format("back %.3f", seconds)) }
    Dir.rmdir(@mine)
    [@journal, @lock_file].each(&:close)
  end

  private

  # A node's replacement has the same lock. It is held until the process or this runner ends.
  def take_number
    @lock_file = File.new(File.join(@queue, "number#{@number}"), File::RDWR | File::CREAT)
    note("twice", @number) unless @lock_file.flock(File::LOCK_EX | File::LOCK_NB)
  end

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  # Ruby has already reported why the thread ended.
  def await(threads)
    threads.each do |thread|
      thread.join
    rescue Exception # rubocop:disable Lint/RescueException
      nil
    end
  end

  # The kernel may grant next time what it refuses now.
  def every(pause)
    until @quiet_since
      begin
        yield
      rescue SystemCallError, IOError
        nil
      end
      @lock.synchronize { @news.wait(@lock, pause) unless @quiet_since }
    end
  end

  # @return [Boolean, nil] whether there may be more jobs
  def perform_next
    jobs = Dir.children(File.join(@queue, "inbox"))
    @lag = jobs.size
    return if jobs.empty? || @quiet_since

    job = jobs.min
    attempt(job) if take(job)
    true
  end

  # @return [Object, nil] nil: no more jobs are taken, or another process was faster
  def take(job)
    @lock.synchronize do
      next if @quiet_since

      File.rename(File.join(@queue, "inbox", job), File.join(@mine, job))
      @running[job] = Thread.current
    end
  rescue Errno::ENOENT
    nil
  end

  def attempt(job)
    note("begun", job)
    perform(File.read(File.join(@mine, job)).to_f)
    finish(job)
  rescue StandardError
    sleep AGAIN
    @lock.synchronize do
      give_back(job, "failed")
      @done += 1
      @failed += 1
    end
  end

  def perform(seconds)
    @harm&.call
    self.class.stalled = true if told?("stall")
    Lies.tell_if_told(File.join(@folder, "lie at work"))
    sleep seconds
    sleep 0.1 while self.class.stalled
  end

  # True once, in one process, which appends its pid to the name of the file.
  def told?(name)
    file = File.join(@folder, name)
    File.exist?(file) && File.rename(file, "#{file}.#{Process.pid}")
  rescue Errno::ENOENT
    false
  end

  def finish(job)
    @lock.synchronize do
      note("done", job)
      File.unlink(File.join(@mine, job))
      @running.delete(job)
      @done += 1
    end
  end

  def give_back(job, word)
    note(word.split.first, job, *word.split.drop(1))
    File.rename(File.join(@mine, job), File.join(@queue, "inbox", job))
    @running.delete(job)
  end

  def note(word, job, *more)
    @journal.syswrite("#{[word, job, Process.pid, format("%.3f", now), *more].join(" ")}\n")
  end

  def give_back_of_the_dead
    Dir.children(File.join(@queue, "taken")).each do |owner|
      pid, born = owner.split("-")
      next if born(pid) == born

      folder = File.join(@queue, "taken", owner)
      Dir.children(folder).each { |job| File.rename(File.join(folder, job), File.join(@queue, "inbox", job)) }
      Dir.rmdir(folder)
    rescue Errno::ENOENT, Errno::ENOTEMPTY
      nil # another process has given it back
    end
  end

  # @return [String, nil] its start time, because pids are reused; nil: it has ended, or is a zombie
  def born(pid)
    state, *others = File.read("/proc/#{pid}/stat")[/\) (.*)\z/m, 1].split
    others[18] unless %w[Z X].include?(state)
  rescue SystemCallError
    nil
  end
end
