# frozen_string_literal: true

require "test_helper"
require "json"
require "open3"
require "pando/fork_safety/libraries"
require_relative "../../../ci/libraries_table"

# What is known of libraries. Each script is a Ruby of its own, so that it decides what is loaded there.
class LibrariesTest < Minitest::Test
  Libraries = Pando::ForkSafety::Libraries

  def test_what_manages_connections_is_prepared_before_its_drivers
    names = Libraries::Known.names

    drivers = %w[pg mysql2 trilogy sqlite3 redis-client]
    %w[activerecord sequel connection_pool].product(drivers).each do |manager, driver|
      assert_operator names.index(manager), :<, names.index(driver), "#{manager} before #{driver}"
    end
  end

  def test_a_library_has_one_row
    error = assert_raises(ArgumentError) { Libraries::Known.describe("pg", constant: "PG") { fine note: "" } }

    assert_equal "pg has a row already", error.message
  end

  def test_every_rule_names_its_source_and_what_the_user_must_do
    Libraries::Known.all.each do |library|
      refute_empty library.rules, library.name
      library.rules.each do |rule|
        assert_includes Libraries::Entry::VERDICTS, rule.verdict, library.name
        assert_match %r{\Ahttps://}, rule.source, library.name
        assert_match(/\A[A-Z].*\.\z/, rule.note, library.name)
        assert rule.advice, "#{library.name}: what is to be done" if rule.verdict == :refused
      end
    end
  end

  def test_what_is_handled_has_something_that_does_it
    Libraries::Known.all.select { |library| library.rules.any? { |rule| rule.verdict == :handled } }.each do |library|
      steps = %i[before_fork in_parent in_child].filter_map { |name| library.step(name) }
      assert steps.any? || library.marks.any? || library.unsafe_threads?, library.name
    end
  end

  def test_the_docs_show_exactly_this_table
    text = File.read(LibrariesTable::PATH)

    assert_includes text, LibrariesTable::FIRST + LibrariesTable.table + LibrariesTable::LAST
  end

  def test_nothing_is_loaded_by_looking
    assert_equal "[]\nautoload\n", run_ruby(<<~RUBY)
      module Vips; autoload :Operation, "/nowhere/vips"; end
      autoload :RedisClient, "/nowhere/redis"
      require "pando/fork_safety/libraries"
      p Pando::ForkSafety::Libraries.loaded
      too_much = defined?(Pando::Config) || defined?(Pando::Cluster) || defined?(Pando::Events)
      puts too_much ? "too much" : Vips.autoload?(:Operation) && "autoload"
    RUBY
  end

  def test_a_verdict_depends_on_the_version
    assert_equal <<~TEXT, run_ruby(<<~RUBY)
      1.1.3 fine
      1.1.2 refused Parent and child share the position in its file, so a lookup may find another type.
      1.1.3.beta1 fine
      no version unknown Pando knows nothing about this version.
    TEXT
      require "pando/fork_safety/libraries"
      module MiniMime; class Db; end; end
      library = Pando::ForkSafety::Libraries::Known.library("mini_mime")
      %w[1.1.3 1.1.2 1.1.3.beta1 none].each do |text|
        version = text == "none" ? nil : Gem::Version.new(text)
        library.singleton_class.class_exec { remove_method(:version) if method_defined?(:version, false) }
        library.define_singleton_method(:version) { version }
        entry = Pando::ForkSafety::Libraries.loaded.first
        puts [version || "no version", entry.verdict, entry.finding&.message&.split(": ", 2)&.last].compact.join(" ")
      end
    RUBY
  end

  def test_a_driver_is_fine_behind_what_manages_its_connections
    assert_equal "refused\nfine handled\n", run_ruby(<<~RUBY)
      require "pando/fork_safety/libraries"
      module PG; class Connection; end; end
      puts Pando::ForkSafety::Libraries.loaded.map(&:verdict)
      module Sequel; class Database; end; end
      puts Pando::ForkSafety::Libraries.loaded.sort_by(&:name).map(&:verdict).join(" ")
    RUBY
  end

  # Rails in development loads ActiveRecord::Base with the first model.
  def test_what_manages_the_connections_may_wait_to_be_autoloaded
    assert_equal "fine\n", run_ruby(<<~RUBY)
      require "pando/fork_safety/libraries"
      module ActiveRecord; autoload(:Base, "/nowhere"); end
      module PG; class Connection; end; end
      puts Pando::ForkSafety::Libraries.loaded.map(&:verdict)
    RUBY
  end

  def test_what_is_fine_is_no_finding
    assert_match(/\Apg warning .*before_fork \{ DB.finish \}.*\n\z/, run_ruby(<<~RUBY))
      require "pando/fork_safety/libraries"
      module PG; class Connection; end; end
      module Bootsnap; end
      raise unless Pando::ForkSafety::Libraries.findings(prepared: %w[pg]).empty?
      Pando::ForkSafety::Libraries.findings.each { |one| puts [one.subject, one.severity, one.advice].join(" ") }
    RUBY
  end

  def test_gems_with_an_extension_that_nobody_knows_are_named
    assert_equal "mystery 1.2.3 unknown note\n", run_ruby(<<~RUBY)
      require "pando/fork_safety/libraries"
      { "mystery" => "mystery", "bigdecimal" => "bigdecimal", "unused" => nil }.each do |name, feature|
        Gem.loaded_specs[name] = Gem::Specification.new(name, "1.2.3")
        $LOADED_FEATURES << "/gems/extensions/x86_64-linux/3.1.0/\#{name}-1.2.3/\#{feature}.so" if feature
      end
      Pando::ForkSafety::Libraries.loaded.each { |one| puts [one, one.verdict, one.finding.severity].join(" ") }
    RUBY
  end

  def test_the_environment_is_prepared_and_the_users_choice_respected
    script = 'require "pando/fork_safety/libraries"; Pando::ForkSafety::Libraries.prepare_environment; ' \
             'puts ENV["GRPC_ENABLE_FORK_SUPPORT"]'

    assert_equal "1\n", run_ruby(script)
    assert_equal "0\n", run_ruby(script, "GRPC_ENABLE_FORK_SUPPORT" => "0")
  end

  def test_the_first_use_marks_the_process
    assert_equal <<~TEXT, run_ruby(<<~RUBY)
      true
      [:name, {:a=>1}, :block]
      false ruby-vips: libvips was used, and no child has its threads
    TEXT
      require "pando/fork_safety"
      require "pando/fork_safety/libraries"
      module Vips; class Operation; def self.call(name, options = {}) = [name, options, yield]; end; end
      2.times { Pando::ForkSafety::Libraries.watch }
      p Pando.fork_safe?
      puts Vips::Operation.call(:name, a: 1) { :block }.inspect.sub("a: 1", ":a=>1")
      puts "\#{Pando.fork_safe?} \#{Pando::ForkSafety.reason}"
    RUBY
  end

  def test_three_hundred_gems_are_looked_at_in_a_moment
    seconds = run_ruby(<<~RUBY).to_f
      require "pando/fork_safety/libraries"
      300.times do |number|
        Gem.loaded_specs["gem\#{number}"] = Gem::Specification.new("gem\#{number}", "1.0")
        10.times { |file| $LOADED_FEATURES << "/gems/gem\#{number}-1.0/lib/\#{file}.rb" }
      end
      100.times { |number| $LOADED_FEATURES << "/gems/gem\#{number}-1.0/lib/native.so" }
      start = Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID)
      raise unless Pando::ForkSafety::Libraries.loaded.size >= 100
      print Process.clock_gettime(Process::CLOCK_PROCESS_CPUTIME_ID) - start
    RUBY

    assert_operator seconds, :<, 0.05 # CPU, on a loaded machine
  end

  private

  def run_ruby(script, environment = {})
    environment = { "GRPC_ENABLE_FORK_SUPPORT" => nil, "RUBYOPT" => nil }.merge(environment)
    command = [RbConfig.ruby, "-w", "-I", Support::Checkout.path("lib"), "-e", script]
    output, status = Open3.capture2e(environment, *command)
    assert_predicate status, :success?, output
    output
  end
end

# What is run around a fork, and what becomes of errors in it.
class PreparationTest < Minitest::Test
  Libraries = Pando::ForkSafety::Libraries

  def setup
    @story = []
    @told = []
  end

  def test_the_last_to_be_made_ready_is_the_first_to_go_on
    assert_equal :pid, around([library("one"), library("two")]) { note("fork", :pid) }
    assert_equal %w[one:before two:before fork two:parent one:parent], @story
  end

  def test_a_fork_that_fails_is_followed_by_the_parents_part
    assert_raises(Errno::EAGAIN) { around([library("one")]) { raise Errno::EAGAIN } }
    assert_equal %w[one:before one:parent], @story
  end

  def test_the_child_does_its_part_when_it_is_told_to
    assert_equal %w[one:before two:before fork later two:child one:child], in_child
  end

  def test_a_library_that_fails_is_left_out
    around([library("one"), library("bad", before: -> { raise "no\nway" }), library("two")]) { note("fork") }

    assert_equal %w[one:before two:before fork two:parent one:parent], @story
    assert_equal [%W[bad no\nway]], @told
  end

  def test_or_prevents_the_fork_where_that_is_wanted
    reason = forked do
      error = assert_raises(Libraries::Unsafe) do
        around([library("one"), library("bad", before: -> { raise "no\nway" }), library("two")], strict: true) { flunk }
      end
      [error.message, Pando::ForkSafety.reason, *@story]
    end

    assert_equal ["bad: no", "bad: no", "one:before", "one:parent"], reason
  end

  def test_what_fails_after_the_fork_is_told_and_stops_nobody
    around([library("one"), library("bad", parent: -> { raise "late" })]) { note("fork") }

    assert_equal %w[one:before bad:before fork one:parent], @story
    assert_equal [%w[bad late]], @told
  end

  def test_native_threads_that_no_child_would_have_prevent_it
    threads = Libraries::Library.new("threads", "Object") { unsafe_threads(/./) }
    reason = forked do
      [assert_raises(Libraries::Unsafe) { around([threads], strict: true) { flunk } }.message]
    end

    assert_match(/\Athreads: \d+ of its native threads are alive, and a child has none of them\z/, reason.first)
  end

  def test_one_that_came_too_late_to_be_watched_prevents_it
    late = Libraries::Library.new("late", "Object") { unsafe_after("PreparationTest", :setup, because: "it is a test") }
    reason = forked { [assert_raises(Libraries::Unsafe) { around([late], strict: true) { flunk } }.message] }
    watched = forked do
      Libraries::FirstUse.watch(late.marks.first, "late")
      [around([late], strict: true) { "forked" }]
    end

    assert_equal ["late: it was loaded late and may have been used"], reason
    assert_equal %w[forked], watched
  end

  private

  def note(text, result = nil)
    @story << text
    result
  end

  def library(name, before: -> {}, parent: -> {}, child: -> {})
    story = @story
    Libraries::Library.new(name, "Object") do
      handled note: "It is made up.", source: "https://example.test"
      before_fork { before.call.then { story << "#{name}:before" } }
      in_parent { parent.call.then { story << "#{name}:parent" } }
      in_child { child.call.then { story << "#{name}:child" } }
    end
  end

  def around(libraries, strict: false, &fork) = preparation(libraries).around(strict, &fork)

  def preparation(libraries)
    Libraries::Preparation.new(libraries, ->(name, error) { @told << [name, error.message] })
  end

  # @return what the block returned, in a child of this process
  def forked
    reader, writer = IO.pipe
    pid = fork do
      writer.write(JSON.generate(yield))
    ensure
      exit!(0)
    end
    writer.close
    JSON.parse(reader.read)
  ensure
    Process.wait(pid)
  end

  def in_child
    reader, writer = IO.pipe
    preparation = preparation([library("one"), library("two")])
    pid = preparation.around(false) { note("fork").then { fork } }
    unless pid
      @story << "later"
      preparation.settle
      writer.write(@story.join(" "))
      exit!(0)
    end
    writer.close
    reader.read.split
  ensure
    Process.wait(pid) if pid
  end
end
