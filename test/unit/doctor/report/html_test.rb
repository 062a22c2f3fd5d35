# frozen_string_literal: true

require "test_helper"
require "json"
require "pando/doctor"
require "pando/doctor/report/html"

# The figures as a part of a page.
class DoctorReportLazyStateTest < Minitest::Test
  FIGURES = {
    requests: [{ request: 1, objects: 12_345, bytes: 2, code_bytes: 0, inline_caches: 7, files: 0, compiled: 0 }],
    lines: [{ place: "/app/<b>.rb:3", allocated: "/app/a.rb:3", classes: %w[String Hash], held_by: [], objects: 1,
              bytes: 2 }],
    classes: [], loaded: [], compiled: [], inline_caches: [],
    pages: [{ after: "fork", total: 4096, ruby_heap: 4096 }, { after: 1, total: 8192, ruby_heap: 4096, malloc: 4096 }],
    calls: { first_request: 9, only_first: 1, methods: [{ method: "A#b", place: "/app/a.rb:3" }] }
  }.freeze

  def page(figures) = Pando::Doctor::Report::Html::LazyStateSection.render(figures)

  def test_each_tag_is_closed
    open = []
    page(FIGURES).scan(%r{<(/?)(\w+)[^>]*>}) do |slash, name|
      slash.empty? ? open.push(name) : assert_equal(name, open.pop)
    end

    assert_empty open
  end

  def test_texts_are_escaped_and_numbers_grouped
    cells = page(FIGURES).scan(%r{<td[^>]*>([^<]*)</td>}).flatten

    assert_includes cells, "12,345"
    assert_equal ["/app/&lt;b&gt;.rb:3", "/app/a.rb:3", "String, Hash", "", "1", "2"], cells[7, 6]
  end

  def test_memory_is_a_picture
    assert_equal ["fork", "4.0 KiB", "request 1", "8.0 KiB"], page(FIGURES).scan(%r{<text[^>]*>([^<]*)</text>}).flatten
  end

  def test_figures_that_have_been_json_look_the_same
    assert_equal page(FIGURES), page(JSON.parse(JSON.generate(FIGURES)))
  end

  def test_without_figures_there_is_nothing_to_see
    assert_equal '<section class="lazy-state"></section>', page({})
  end
end
