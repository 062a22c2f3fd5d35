# frozen_string_literal: true

require "test_helper"
require "support/lazy_app"
require "tmpdir"

# What is planted in an application is found, with its line and its size; what is sound is not.
class LazyStateTest < Minitest::Test
  include Support::LazyApp

  def test_an_application_that_builds_everything_at_boot_is_clean
    result = observe(<<~'RUBY')
      require "erb"
      TABLE = Array.new(1000) { |number| "entry #{number}" }
      WORDS = Regexp.union(Array.new(500) { |number| "word#{number}" })
      PAGE = ERB.new("<%= number %>" * 100).tap { |page| page.def_method(Object, "page(number)", "page.erb") }
      CACHE = {}
      def serve(number)
        CACHE[:last] = "x" * 100_000
        page(number).size + TABLE.size + ("word3"[WORDS]).size
        Array.new(1000) { |one| "gone soon #{one}" }
      end
    RUBY

    assert_empty result.findings.map(&:to_s)
    assert_equal([0] * 5, result.figures[:requests].first(5).map { |row| row[:files] })
  end

  def test_a_memo_is_found
    found = only(observe(<<~'RUBY'))
      module Catalogue
        def self.table
          @table ||= Array.new(10_000) { |number| "entry number #{number} of the table" }
        end
      end
      def serve(_number) = Catalogue.table.size
    RUBY

    assert_equal [:lazy_memory, :warning, "#{path("app.rb")}:3", "Catalogue.@table"],
                 [found.kind, found.severity, found.location, found.subject]
    assert_includes 10_001..10_002, found.details[:objects] # Ruby 4.0 keeps a module's variables in an object
    assert_includes 700_000..1_300_000, found.details[:bytes]
    assert_includes found.message, "String"
    assert_includes found.advice, "Catalogue.@table"
  end

  def test_what_a_library_builds_is_shown_at_the_line_of_the_application
    found = only(observe(<<~'RUBY'))
      require "set"
      require "json"
      class Settings
        def self.all = @all ||= JSON.parse(TEXT)
        TEXT = JSON.generate(Array.new(500) { |number| { name: "setting #{number}" } })
      end
      def serve(_number) = Settings.all.size
    RUBY

    assert_equal [:lazy_memory, "#{path("app.rb")}:4"], [found.kind, found.location]
    assert_includes 40_000..250_000, found.details[:bytes]
  end

  def test_a_regexp_that_is_compiled_on_first_use_is_found
    found = only(observe(<<~'RUBY'))
      WORDS = Array.new(500) { |number| "word#{number}" }
      def words = @words ||= Regexp.union(WORDS)
      def serve(_number) = words.match?("word7")
    RUBY

    assert_equal [:lazy_memory, :note, "#{path("app.rb")}:2"], [found.kind, found.severity, found.location]
    assert_includes 5_000..50_000, found.details[:bytes]
    assert_match(/Regexp a constant/, found.advice)
  end

  def test_a_long_string_that_a_library_builds_is_found
    found = only(observe(<<~RUBY, "vendor/bundle/gems/big-1.0/lib/big.rb" => <<~GEM))
      require_relative "vendor/bundle/gems/big-1.0/lib/big"

      def serve(_number)
        Big.text.size
      end
    RUBY
      module Big
        def self.text = @text ||= ("x" * 300_000)
      end
    GEM

    assert_equal [:lazy_memory, :warning, "#{path("app.rb")}:4", "Big.@text"],
                 [found.kind, found.severity, found.location, found.subject]
    assert_equal ["#{path("vendor/bundle/gems/big-1.0/lib/big.rb")}:2"], found.details[:lines]
    assert_includes 300_000..301_000, found.details[:bytes]
  end

  def test_an_autoloaded_constant_is_found
    found = only(observe(<<~RUBY, "late.rb" => "module Shop; class Late; WORDS = %w[a b].freeze; end; end\n"))
      module Shop
        autoload :Late, File.join(__dir__, "late")
      end
      def serve(_number)
        Shop::Late::WORDS.size
      end
    RUBY

    assert_equal [:lazy_constant, :note, "#{path("app.rb")}:5", "Shop::Late"],
                 [found.kind, found.severity, found.location, found.subject]
    assert_equal [path("late.rb")], found.details[:files]
    assert_includes 500..20_000, found.details[:bytes]
  end

  def test_a_require_within_a_request_is_found_with_the_files_behind_it
    found = only(observe(<<~RUBY, "one.rb" => "require_relative 'two'\n", "two.rb" => "TWO = 'x' * 300_000\n"))
      def serve(_number)
        require_relative "one"
        TWO.size
      end
    RUBY

    assert_equal [:lazy_require, :warning, "#{path("app.rb")}:2"], [found.kind, found.severity, found.location]
    assert_equal %w[one.rb two.rb].map { |name| path(name) }, found.details[:files]
    assert_includes 300_000..330_000, found.details[:bytes]
  end

  def test_a_library_without_ruby_files_is_found
    found = only(observe(<<~RUBY))
      def serve(_number)
        require "ripper.so"
      end
    RUBY

    assert_equal [:lazy_require, "#{path("app.rb")}:2"], [found.kind, found.location]
    assert_match(/ripper\.so\z/, found.details[:files].last)
  end

  def test_a_template_that_is_compiled_on_first_use_is_found
    found = only(observe(<<~RUBY, "page.erb" => "<%= number %>\n" * 50))
      require "erb"
      PAGE = File.join(__dir__, "page.erb")
      class View; end
      def serve(number)
        ERB.new(File.read(PAGE)).def_method(View, "page(number)", PAGE) unless View.method_defined?(:page)
        View.new.page(number)
      end
    RUBY

    assert_equal [:lazy_code, :note, "page.erb"], [found.kind, found.severity, found.subject]
    assert_match(/\A#{Regexp.escape(path("page.erb"))}:\d+\z/, found.location)
    assert_includes 1_000..100_000, found.details[:bytes]
  end

  def test_a_method_that_is_defined_by_its_first_call_is_found
    found = only(observe(<<~RUBY))
      class Record
        def respond_to_missing?(*) = true

        def method_missing(name, *)
          self.class.define_method(name) { name.to_s }
          public_send(name)
        end
      end
      def serve(_number) = Record.new.title
    RUBY

    assert_equal [:lazy_method, "#{path("app.rb")}:5", "Record"], [found.kind, found.location, found.subject]
    assert_equal ["title"], found.details[:methods]
  end

  def test_a_cache_that_grows_is_found_and_not_called_lazy
    found = only(observe(<<~'RUBY'))
      CACHE = {}
      def serve(number)
        CACHE["page #{number}"] =
          "x" * 5000
      end
    RUBY

    assert_equal [:growth_per_request, :warning, "#{path("app.rb")}:4", "CACHE"],
                 [found.kind, found.severity, found.location, found.subject]
    assert_includes 5_000..5_200, found.details[:bytes]
    assert_equal [3, 4], found.details[:lines].map { |line| line[/\d+\z/].to_i }.sort
  end

  def test_files_left_open_are_told_by_their_descriptors
    result = observe(<<~RUBY)
      PIPES = []
      def serve(_number)
        PIPES << IO.pipe
      end
    RUBY

    assert_empty result.findings.map(&:to_s)
  end

  def test_a_private_constant_has_no_name_but_a_module
    found = only(observe(<<~RUBY))
      class Visits
        COUNTS = {}
        private_constant :COUNTS
        def self.add(number) = COUNTS[number] = true
      end
      def serve(number) = Visits.add(number)
    RUBY

    assert_equal [:growth_per_request, "#{path("app.rb")}:1", "a private constant of Visits"],
                 [found.kind, found.location, found.subject]
  end

  def test_a_count_without_objects_that_grows_is_found
    found = only(observe(<<~RUBY))
      class Visits
        COUNTS = {}
        def self.add(number) = COUNTS[number] = true
      end
      def serve(number) = Visits.add(number)
    RUBY

    assert_equal [:growth_per_request, "#{path("app.rb")}:2", "Visits::COUNTS"],
                 [found.kind, found.location, found.subject]
    assert_equal 1, found.details[:entries]
  end

  def test_forked_children_measure_and_leave_this_process_alone
    result = observe(<<~'RUBY', how: :examine)
      def table = @table ||= build
      def build = Array.new(20_000) { |number| "entry #{number}" }
      def serve(_number)
        raise "served in the parent" if Process.pid == BOOTED
        table.size
      end
      BOOTED = Process.pid
      at_exit { raise "something was built here" if @table }
    RUBY
    pages = result.figures[:pages].to_h { |row| [row[:after], row] }

    assert_equal [:lazy_memory], result.findings.map(&:kind)
    assert_equal ["fork", *1..10, "full GC"], pages.keys
    assert_operator pages[1][:total] - pages["fork"][:total], :>, 800_000
    assert_operator pages[10][:total] - pages[2][:total], :<, 400_000
    assert_equal(["Object#build"], result.figures[:calls][:methods].map { |row| row[:method] })
  end

  def test_a_thread_is_no_memory_to_be_shared
    result = observe(<<~RUBY)
      def serve(_number)
        $flusher ||= Thread.new { Thread.stop }
      end
    RUBY

    assert_empty result.findings.map(&:to_s)
  end

  def test_requests_may_come_from_outside
    result = observe(<<~'RUBY', how: :session)
      CACHE = {}
      def table = @table ||= Array.new(1000) { |number| "entry #{number}" }
      def serve(number) = CACHE["page #{number}"] = table.size
    RUBY

    assert_equal([[:growth_per_request, "#{path("app.rb")}:3"], [:lazy_memory, "#{path("app.rb")}:2"]],
                 result.findings.map { |one| [one.kind, one.location] })
  end

  def test_a_class_variable_that_was_overtaken_is_no_hindrance
    found = only(observe(<<~RUBY))
      class Base; end
      class Sub < Base
        @@list = nil
        def self.list = @list ||= Array.new(1000) { |number| number.to_s }
      end
      class Base; @@list = 1; end
      def serve(_number) = Sub.list
    RUBY

    assert_equal [:lazy_memory, "Sub.@list"], [found.kind, found.subject]
  end

  def test_a_child_that_fails_says_why
    error = assert_raises(Minitest::Assertion) { observe(<<~RUBY, how: :examine) }
      def serve(_number) = raise("no database here")
    RUBY

    assert_includes error.message, "no database here"
    assert_includes error.message, "ForkedRun::Failed"
  end
end
