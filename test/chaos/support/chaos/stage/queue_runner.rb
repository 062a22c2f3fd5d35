# frozen_string_literal: true

require "fileutils"
require "lies"
require "poison"

# The runner of a chaos run's job nodes, over a queue that is durable and gives each job at least once: folders. A job
# is a file of inbox/; who takes it moves it to a folder of its own process in taken/, writes down that it has begun,
# does it, writes down that it is done, and removes it. What a process leaves that is dead, whoever finds it gives back.
# Lives in the server under test.
class QueueRunner
  PAUSE = 0.02 # seconds for which a thread without a job waits
  SEARCH = 0.5 # seconds between two looks for the dead
  AGAIN = 0.1 # seconds until a job that has failed is another thread's

  class << self
    # Whether no job of this process comes to an end any more.
    attr_accessor :stalled
  end

  attr_reader :done, :failed, :lag
  alias progress done

  # @param node [Pando::Swarm::Node] @param folder [String] the stage's
  # @param sick [String, nil] how each job is harmed, see Poison
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

  # Nothing is taken from now on, for nothing is without the lock.
  def quiet
    @lock.synchronize do
      @quiet_since ||= now
      @news.broadcast
    end
  end

  def busy? = !@running.empty?
  def in_progress = @running.size
  def healthy? = ("a thread has died" unless @quiet_since || @threads.all?(&:alive?))

  # Who holds the lock is not stopped between what must be both or neither. Who has no job ends by itself, for what
  # Ruby is about to open when a thread is killed stays open.
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

  # Whoever replaces it has the same. Held until the process is gone, or this runner.
  def take_number
    @lock_file = File.new(File.join(@queue, "number#{@number}"), File::RDWR | File::CREAT)
    note("twice", @number) unless @lock_file.flock(File::LOCK_EX | File::LOCK_NB)
  end

  def now = Process.clock_gettime(Process::CLOCK_MONOTONIC)

  # What one has died of was told by Ruby.
  def await(threads)
    threads.each do |thread|
      thread.join
    rescue Exception # rubocop:disable Lint/RescueException
      nil
    end
  end

  # What the kernel refuses now it may grant the next time.
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

  # @return [Boolean, nil] whether there may be more
  def perform_next
    jobs = Dir.children(File.join(@queue, "inbox"))
    @lag = jobs.size
    return if jobs.empty? || @quiet_since

    job = jobs.min
    attempt(job) if take(job)
    true
  end

  # @return [Object, nil] nil: nothing more is taken, or somebody was faster
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

  # Once, and by one process, which leaves its pid.
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
      nil # somebody else has found it too
    end
  end

  # @return [String, nil] when it began, for pids come again; nil: it is gone, or dead and unburied
  def born(pid)
    state, *others = File.read("/proc/#{pid}/stat")[/\) (.*)\z/m, 1].split
    others[18] unless %w[Z X].include?(state)
  rescue SystemCallError
    nil
  end
end
