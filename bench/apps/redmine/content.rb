# frozen_string_literal: true

require_relative "traffic"

module Bench
  module RedmineApp
    # What is in the database: the same each time. Runs inside Redmine.
    class Content
      WORDS = %w[account address agent answer archive backup banner batch branch browser budget button cache calendar
                 channel client column comment contact contract copy cost counter customer database deadline default
                 delivery design device document domain draft editor email error event export field filter folder form
                 format gateway group header history import index invoice label language layout ledger letter level
                 link list login margin menu message method migration mobile module month network notice number offer
                 option order package page parser partner password payment period plugin policy portal print process
                 product profile project query queue quota rate record region release report request result review
                 role route rule sample schedule schema screen search section server session setting share shop
                 signature site sprint stock storage style subject summary support table target task team template
                 test text theme ticket title token total tracker traffic transfer trigger unit update upload user
                 value vendor version view warning week widget window worker zone].freeze
      RANDOM = 17
      PASSWORD = Traffic::PASSWORD
      JOURNALS = 3 # of an issue, at most
      ENTRIES = 400 # of time
      DAYS = 300 # that the issues are old, at most

      def initialize
        @random = Random.new(RANDOM)
      end

      # @return [void]
      def write
        settings
        ActiveRecord::Base.transaction { people }
        ActiveRecord::Base.transaction { projects }
        Traffic::ISSUES.times.each_slice(50) { |some| ActiveRecord::Base.transaction { some.each { issue } } }
        ActiveRecord::Base.transaction { rest }
      end

      private

      def settings
        { "rest_api_enabled" => "1", "notified_events" => [], "welcome_text" => text(3), "app_title" => "Lab",
          "session_lifetime" => "0", "session_timeout" => "0" }.each { |name, value| Setting[name] = value }
      end

      def people
        User.find_by(login: "admin").update!(password: PASSWORD, must_change_passwd: false)
        @users = Array.new(Traffic::USERS) do |index|
          User.new(firstname: word.capitalize, lastname: word.capitalize, mail: "user#{index}@example.org",
                   language: "en", password: PASSWORD).tap do |user|
            user.login = "user#{index}"
            user.save!
          end
        end
        Traffic::LOGINS.each_with_index do |login, index|
          token = Token.create!(user: User.find_by(login: login), action: "api")
          token.update_columns(value: Traffic.key(index))
        end
      end

      def projects
        @roles = Role.givable.to_a
        @projects = Traffic::PROJECTS.map do |name|
          Project.create!(name: name.capitalize, identifier: name, description: text(6), is_public: true,
                          trackers: Tracker.all, enabled_module_names: Redmine::AccessControl.available_project_modules)
                 .tap { |project| equip(project) }
        end
      end

      def equip(project)
        @users.each_with_index do |user, index|
          Member.create!(project: project, principal: user, roles: [@roles[index % @roles.size]])
        end
        6.times { |index| Version.create!(project: project, name: "#{index}.0", effective_date: day(index * 30)) }
        8.times { |index| IssueCategory.create!(project: project, name: "#{word} #{index}") }
        Traffic::PAGES.each { |title| page(project, title) }
        10.times do
          News.create!(project: project, title: line(5), summary: line(8), description: text(4), author: user)
        end
      end

      def page(project, title)
        WikiPage.new(wiki: project.wiki, title: title).then do |page|
          page.content = WikiContent.new(page: page, author: user, text: "# #{line(4)}\n\n{{toc}}\n\n#{text(12)}")
          page.save_with_content(page.content) || raise("#{title}: #{page.errors.full_messages}")
        end
      end

      def issue
        project = pick(@projects)
        issue = Issue.create!(
          project: project, tracker: pick(Tracker.all.to_a), author: user, assigned_to: user, subject: line(7),
          description: text(5), priority: pick(IssuePriority.all.to_a), category: pick(project.issue_categories.to_a),
          fixed_version: pick(project.versions.to_a), start_date: day(-@random.rand(DAYS)), done_ratio: 10 * rand(11),
          estimated_hours: rand(1..20)
        )
        rand(JOURNALS + 1).times { journal(issue) }
        issue.update_columns(created_on: time(issue), updated_on: time(issue) + 3600)
      end

      def journal(issue)
        issue.reload.init_journal(user, text(2))
        issue.status = pick(IssueStatus.all.to_a)
        issue.done_ratio = 10 * rand(11)
        issue.save!(validate: false)
      end

      def rest
        issues = Issue.all.to_a
        activities = TimeEntryActivity.all.to_a
        ENTRIES.times do
          about = pick(issues)
          TimeEntry.create!(project: about.project, issue: about, user: user, author: user, hours: rand(1..7),
                            activity: pick(activities), spent_on: day(-rand(DAYS)), comments: line(5))
        end
        @projects.each { |project| board(project) }
      end

      def board(project)
        board = Board.create!(project: project, name: "Help", description: line(5))
        10.times do
          topic = Message.create!(board: board, subject: line(5), content: text(4), author: user)
          2.times { Message.create!(board: board, parent: topic, subject: "Re", content: text(2), author: user) }
        end
      end

      def rand(range) = @random.rand(range)
      def pick(list) = list[rand(list.size)]
      def user = pick(@users)
      def word = pick(WORDS)
      def line(words) = Array.new(words) { word }.join(" ").capitalize
      def day(number) = Date.current + number
      def time(issue) = issue.start_date.to_time + (8 * 3600)

      # Paragraphs with what a formatter has to look at.
      def text(paragraphs)
        Array.new(paragraphs) do |index|
          sentences = Array.new(4) { "#{line(9)} *#{word}* #{word}." }.join(" ")
          index.odd? ? "### #{line(3)}\n\n- #{line(4)}\n- **#{line(3)}** `#{word}`" : "#{sentences} ##{rand(1..90)}"
        end.join("\n\n")
      end
    end
  end
end
