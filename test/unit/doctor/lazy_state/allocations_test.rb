# frozen_string_literal: true

require "test_helper"
require "pando/doctor/lazy_state"

# The objects of one line, counted by the request that made them.
class LazyStateGroupTest < Minitest::Test
  def group(*objects, name: "String")
    Pando::Doctor::LazyState::Group.new("/app/a.rb", 3, nil, name, objects.size).tap do |made|
      objects.each_with_index { |count, window| count.times { made.add(window, 100) } }
    end
  end

  def test_what_only_the_first_request_made_is_lazy
    made = group(4, 0, 0, 0)

    assert_equal [true, false, 4, 400], [made.lazy?, made.grows?, made.lasting_objects, made.lasting_bytes]
  end

  def test_what_each_request_makes_grows_and_is_not_lazy
    made = group(4, 2, 3, 2)

    assert_equal [false, true, 3, 250], [made.lazy?, made.grows?, made.objects_per_request, made.bytes_per_request]
  end

  def test_what_the_last_one_holds_is_neither
    made = group(0, 0, 0, 5)

    assert_equal [false, false], [made.lazy?, made.grows?]
  end

  def test_what_the_first_few_requests_complete_is_lazy
    made = group(4, 1, 0, 0)

    assert_equal [true, false, 5], [made.lazy?, made.grows?, made.lasting_objects]
  end

  def test_a_table_of_the_vm_counts_for_no_file_that_was_loaded_when_it_grew
    file = "/gems/x-1/x.rb"
    load = Pando::Doctor::LazyState::Loading::Load.new(0, file, ["/app/a.rb", 3], "X", nil, [file])
    owners = { load => [group(2, 0, 0), group(40_000, 0, 0, name: "(internal data)")] }
    places = Class.new { def library(_path) = "x" }.new
    loading = Struct.new(:loads, :compiled).new([load], [])
    findings = Pando::Doctor::LazyState::CodeFindings.new(loading, [], owners, places).findings

    assert_equal([200], findings.map { |one| one.details[:bytes] })
  end

  def test_of_two_requests_the_second_one_says_what_is_lazy
    assert_predicate group(1, 0), :lazy?
    refute_predicate group(1, 1), :lazy?
    refute_predicate group(1, 1), :grows?
  end

  def test_of_a_single_request_everything_counts
    made = group(3)

    assert_equal [true, false, 3, 300, 0],
                 [made.lazy?, made.grows?, made.lasting_objects, made.lasting_bytes, made.objects_per_request]
  end

  def test_it_knows_inline_caches_and_code
    assert_predicate group(1, name: :callcache), :cache?
    assert_predicate group(1, name: :iseq), :code?
    refute_predicate group(1), :vm?
    assert_predicate group(1, name: "(internal array)"), :vm?
  end
end

# Arrays, hashes and strings that grow without new objects.
class LazyStateContainersTest < Minitest::Test
  def growth(container, steps)
    containers = Pando::Doctor::LazyState::Containers.new
    containers.count
    steps.each do |step|
      step.call
      containers.count
    end
    containers.growths.find { |one| one.address == Pando::Origins.address(container) }
  end

  def test_what_each_request_adds_is_steady
    list = [1]
    found = growth(list, Array.new(4) { -> { list << 2 << 3 } })

    assert_equal [1, [2, 2, 2, 2], true, false, 2],
                 [found.before, found.gains, found.steady?, found.once?, found.gain]
  end

  def test_what_the_first_one_adds_is_not
    table = {}
    found = growth(table, [-> { 500.times { |number| table[number] = true } }, -> {}, -> {}, -> {}])

    assert_equal [false, true, 500], [found.steady?, found.once?, found.gain]
  end

  def test_a_long_string_is_followed
    text = "x" * 2000
    found = growth(text, Array.new(4) { -> { text << "yy" } })

    assert_equal [2000, 2], [found.before, found.gain]
  end

  def test_what_is_emptied_is_no_growth
    list = [1]

    assert_nil growth(list, [-> { list << 2 }, -> { list.clear }, -> {}])
  end
end
