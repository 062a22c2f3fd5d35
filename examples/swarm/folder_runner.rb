# frozen_string_literal: true

require "fileutils"

# A runner without any broker: jobs are files in a folder. The node that runs one holds a lock on it (flock(2)), and the
# kernel takes that back when the process dies. So a job is done again by another node, and never lost: at least once.
class FolderRunner
  PAUSE = 0.5 # seconds between two looks into an empty folder

  # Jobs that were done, well or not: what tells a node that works from one that hangs.
  attr_reader :progress
  attr_reader :failed

  # Made in the node: neither a thread nor a file may be open when this returns.
  #
  # @param node [Pando::Swarm::Node]
  # @yieldparam name [String] of the file @yieldparam text [String] what is in it
  def initialize(node, inbox, done, &work)
    @concurrency = node.concurrency
    @inbox = inbox
    @done = done
    @work = work
    @lock = Mutex.new
    @news = ConditionVariable.new
    @progress = @failed = @running = 0
    @quiet = false
  end

  def start
    FileUtils.mkdir_p([@inbox, @done])
    @threads = Array.new(@concurrency) { |number| Thread.new { run("folder #{number}") } }
  end

  # Nothing new from now on. It does not wait for what runs.
  def quiet
    @lock.synchronize do
      @quiet = true
      @news.broadcast
    end
  end

  # What still runs is broken off: its lock goes with its thread, and another node will do it.
  def stop
    quiet
    @threads.each(&:kill) if busy?
    @threads.each(&:join)
  end

  def busy? = @running > 0
  def in_progress = @running

  # Called at every tick, as the others: it must be cheap.
  def healthy? = ("a thread has died" unless @quiet || @threads.all?(&:alive?))

  private

  def run(name)
    Thread.current.name = name
    attempt || @lock.synchronize { @news.wait(@lock, PAUSE) unless @quiet } until @quiet
  end

  # @return [Boolean] whether there was a job
  def attempt
    count(1) # before it is looked for: between the two nobody may think that nothing runs
    name, file = claim
    file ? perform(name, file) : false
  ensure
    count(-1)
    file&.close
  end

  # @return [Array(String, File), nil] a job that nobody else does
  def claim
    Dir.children(@inbox).sort.each do |name|
      path = File.join(@inbox, name)
      file = File.new(path)
      return [name, file] if file.flock(File::LOCK_EX | File::LOCK_NB) && File.identical?(path, file)

      file.close
    rescue SystemCallError
      next # somebody was faster
    end
    nil
  end

  def perform(name, file)
    @work.call(name, file.read)
    File.rename(file.path, File.join(@done, name))
    finish(true)
  rescue StandardError => e
    warn "#{name}: #{e.message} (#{e.class})"
    File.rename(file.path, File.join(@done, "#{name}.failed"))
    finish(false)
  end

  def finish(success)
    @lock.synchronize do
      @progress += 1
      @failed += 1 unless success
    end
    true
  end

  def count(change) = @lock.synchronize { @running += change }
end
